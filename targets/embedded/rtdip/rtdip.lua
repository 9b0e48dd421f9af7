-- SPDX-License-Identifier: Apache-2.0
--
-- A dissector of RTDiP for Wireshark and tshark: tshark -X lua_script:rtdip.lua -r FILE. docs/rtdip.md has the format.
--
-- Dissectors of what frames carry are in the table "rtdip.port", by destination port, and in "rtdip.from", by source port. The
-- preference rtdip.fragment_ports says to which ports bw-traffic sends, and from which it grants: -o rtdip.fragment_ports:7000-7999.
-- As it comes: where replays put their streams.

local ETHERTYPE, VERSION = 0x88B5, 1
local HEADER_BYTES, DATA_MAX_BYTES = 12, 8988
local FRAGMENT_HEADER_BYTES, GRANT_BYTES, FRAGMENT_PORTS, PORT_MAX = 8, 12, "20010-26559", 65535
local PRIORITIES = { [0] = "high", [1] = "medium", [2] = "low" }

local rtdip = Proto("rtdip", "RTDiP")
local fields = {
    destination_port = ProtoField.uint16("rtdip.destination_port", "Destination port"),
    priority = ProtoField.uint8("rtdip.priority", "Priority", base.DEC, PRIORITIES),
    version = ProtoField.uint8("rtdip.version", "Version"),
    length = ProtoField.uint16("rtdip.length", "Length of the data"),
    source_port = ProtoField.uint16("rtdip.source_port", "Source port"),
    sequence = ProtoField.uint32("rtdip.sequence", "Sequence"),
    data = ProtoField.bytes("rtdip.data", "Data"),
    padding = ProtoField.bytes("rtdip.padding", "Padding"),
}
rtdip.fields = fields

-- As the counters of `bw-rtdip show` have them.
local short = ProtoExpert.new("rtdip.short", "Shorter than header or length say", expert.group.MALFORMED, expert.severity.ERROR)
local malformed = ProtoExpert.new("rtdip.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
rtdip.experts = { short, malformed }

local by_port = DissectorTable.new("rtdip.port", "RTDiP destination port", ftypes.UINT16, base.DEC, rtdip)
local by_source = DissectorTable.new("rtdip.from", "RTDiP source port", ftypes.UINT16, base.DEC, rtdip)

-- Say why a receiver drops the frame; nil: it does not.
local function refusal(port, priority, version, length)
    if version ~= VERSION then
        return "Version " .. version .. ", not " .. VERSION
    elseif not PRIORITIES[priority] then
        return "No priority " .. priority
    elseif port == 0 then
        return "Destination port 0"
    elseif length > DATA_MAX_BYTES then
        return "Longer than a frame can be"
    end
end

function rtdip.dissector(frame, packet, root)
    local there = frame:reported_len()
    local tree = root:add(rtdip, frame(0, math.min(HEADER_BYTES, frame:len())))
    packet.cols.protocol = "RTDiP"
    if frame:len() < HEADER_BYTES then
        if there < HEADER_BYTES then
            tree:add_proto_expert_info(short)
        end
        return frame:len()
    end
    local port, priority, version = frame(0, 2):uint(), frame(2, 1):uint(), frame(3, 1):uint()
    local length, source_port, sequence = frame(4, 2):uint(), frame(6, 2):uint(), frame(8, 4):uint()
    tree:add(fields.destination_port, frame(0, 2))
    tree:add(fields.priority, frame(2, 1))
    tree:add(fields.version, frame(3, 1))
    tree:add(fields.length, frame(4, 2))
    tree:add(fields.source_port, frame(6, 2))
    tree:add(fields.sequence, frame(8, 4))
    packet.cols.info = string.format("%d > %d %s sequence %d length %d", source_port, port, PRIORITIES[priority] or priority,
        sequence, length)

    local why = refusal(port, priority, version, length)
    if why then
        tree:add_proto_expert_info(malformed, why)
        return frame:len()
    elseif length > there - HEADER_BYTES then
        tree:add_proto_expert_info(short)
        return frame:len()
    end
    local data_bytes = math.min(length, frame:len() - HEADER_BYTES) -- a capture may have less than there was
    if data_bytes > 0 then
        local data = frame(HEADER_BYTES, data_bytes)
        tree:add(fields.data, data)
        local of_source = not by_port:get_dissector(port) and by_source:get_dissector(source_port)
        if not of_source or of_source:call(data:tvb(), packet, root) == 0 then
            by_port:try(port, data:tvb(), packet, root)
        end
    end
    if frame:len() > HEADER_BYTES + length then
        tree:add(fields.padding, frame(HEADER_BYTES + length))
    end
    return frame:len()
end

DissectorTable.get("ethertype"):add(ETHERTYPE, rtdip)

-- A message of bw-traffic in frames: each begins with which message it is of, and where in it.
local fragment = Proto("rtdip_fragment", "bw-traffic over RTDiP")
local message = ProtoField.uint32("rtdip.fragment.message", "Message")
local offset = ProtoField.uint32("rtdip.fragment.offset", "Offset in the message")
local part = ProtoField.bytes("rtdip.fragment.data", "Part of the message")
fragment.fields = { message, offset, part }

function fragment.dissector(data, packet, root)
    if data:len() < FRAGMENT_HEADER_BYTES then
        return 0
    end
    local tree = root:add(fragment, data())
    tree:add(message, data(0, 4))
    tree:add(offset, data(4, 4))
    if data:len() > FRAGMENT_HEADER_BYTES then
        tree:add(part, data(FRAGMENT_HEADER_BYTES))
    end
    packet.cols.info:append(string.format(" message %d offset %d", data(0, 4):uint(), data(4, 4):uint()))
    return data:len()
end

-- What lets the sender of a message go on: how far.
local grant = Proto("rtdip_grant", "bw-traffic's grant over RTDiP")
local grant_run = ProtoField.uint32("rtdip.grant.run", "Run", base.HEX)
local grant_message = ProtoField.uint32("rtdip.grant.message", "Message")
local grant_limit = ProtoField.uint32("rtdip.grant.limit", "Limit in bytes")
grant.fields = { grant_run, grant_message, grant_limit }

function grant.dissector(data, packet, root)
    if data:len() ~= GRANT_BYTES then
        return 0
    end
    local tree = root:add(grant, data())
    tree:add(grant_run, data(0, 4))
    tree:add(grant_message, data(4, 4))
    tree:add(grant_limit, data(8, 4))
    packet.cols.info:append(string.format(" grant message %d limit %d", data(4, 4):uint(), data(8, 4):uint()))
    return data:len()
end

local fragment_ports = FRAGMENT_PORTS
by_port:add(fragment_ports, fragment)
by_source:add(fragment_ports, grant)
rtdip.prefs.fragment_ports = Pref.range("Ports of bw-traffic", FRAGMENT_PORTS, "Ports of streams: fragments go there, grants come from there",
    PORT_MAX)

function rtdip.prefs_changed()
    if fragment_ports ~= "" then
        by_port:remove(fragment_ports, fragment)
        by_source:remove(fragment_ports, grant)
    end
    fragment_ports = rtdip.prefs.fragment_ports
    if fragment_ports ~= "" then
        by_port:add(fragment_ports, fragment)
        by_source:add(fragment_ports, grant)
    end
end
