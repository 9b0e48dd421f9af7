/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that are watched. A row: name of the identifier, Windows' name of the function, what the record calls it (as the
 * Linux recorder does, where it has the like), and what its values are called, in the order in which they are noted.
 */
#ifndef BW_WATCH_FUNCTIONS_H
#define BW_WATCH_FUNCTIONS_H

#define WATCH_FUNCTIONS(ROW) \
	ROW(SOCKET, "socket", "socket", "domain", "type", "protocol") \
	ROW(WSA_SOCKET_A, "WSASocketA", "socket", "domain", "type", "protocol") \
	ROW(WSA_SOCKET_W, "WSASocketW", "socket", "domain", "type", "protocol") \
	ROW(BIND, "bind", "bind", NULL, NULL, NULL) \
	ROW(CONNECT, "connect", "connect", NULL, NULL, NULL) \
	ROW(WSA_CONNECT, "WSAConnect", "connect", NULL, NULL, NULL) \
	ROW(CONNECT_EX, "ConnectEx", "connect", "asked", NULL, NULL) \
	ROW(DISCONNECT_EX, "DisconnectEx", "disconnect", NULL, "flags", NULL) \
	ROW(LISTEN, "listen", "listen", "number", NULL, NULL) \
	ROW(ACCEPT, "accept", "accept", "accepted", NULL, NULL) \
	ROW(WSA_ACCEPT, "WSAAccept", "accept", "accepted", NULL, NULL) \
	ROW(ACCEPT_EX, "AcceptEx", "accept", "accepted", "asked", NULL) \
	ROW(SHUTDOWN, "shutdown", "shutdown", "number", NULL, NULL) \
	ROW(CLOSE_SOCKET, "closesocket", "close", NULL, NULL, NULL) \
	ROW(CLOSE_HANDLE, "CloseHandle", "close", NULL, NULL, NULL) \
	ROW(GET_SOCK_NAME, "getsockname", "getsockname", NULL, NULL, NULL) \
	ROW(GET_PEER_NAME, "getpeername", "getpeername", NULL, NULL, NULL) \
	ROW(SEND, "send", "send", "asked", "flags", NULL) \
	ROW(SEND_TO, "sendto", "send", "asked", "flags", NULL) \
	ROW(WSA_SEND, "WSASend", "send", "asked", "flags", NULL) \
	ROW(WSA_SEND_TO, "WSASendTo", "send", "asked", "flags", NULL) \
	ROW(WSA_SEND_MSG, "WSASendMsg", "send", "asked", "flags", NULL) \
	ROW(TRANSMIT_FILE, "TransmitFile", "send", "asked", "flags", NULL) \
	ROW(WRITE_FILE, "WriteFile", "send", "asked", NULL, NULL) \
	ROW(RECV, "recv", "receive", "asked", "flags", NULL) \
	ROW(RECV_FROM, "recvfrom", "receive", "asked", "flags", NULL) \
	ROW(WSA_RECV, "WSARecv", "receive", "asked", "flags", NULL) \
	ROW(WSA_RECV_FROM, "WSARecvFrom", "receive", "asked", "flags", NULL) \
	ROW(WSA_RECV_MSG, "WSARecvMsg", "receive", "asked", "flags", NULL) \
	ROW(READ_FILE, "ReadFile", "receive", "asked", NULL, NULL) \
	ROW(SET_SOCK_OPT, "setsockopt", "setsockopt", "level", "option", "value") \
	ROW(GET_SOCK_OPT, "getsockopt", "getsockopt", "level", "option", "value") \
	ROW(IOCTL_SOCKET, "ioctlsocket", "ioctl", "command", "value", NULL) \
	ROW(WSA_IOCTL, "WSAIoctl", "ioctl", "command", NULL, NULL) \
	ROW(WSA_ASYNC_SELECT, "WSAAsyncSelect", "event_select", "events", NULL, NULL) \
	ROW(WSA_EVENT_SELECT, "WSAEventSelect", "event_select", "events", NULL, NULL) \
	ROW(WSA_ENUM_EVENTS, "WSAEnumNetworkEvents", "network_events", "events", NULL, NULL) \
	ROW(SELECT, "select", "wait", "timeout_ns", NULL, NULL) \
	ROW(WSA_POLL, "WSAPoll", "wait", "timeout_ns", NULL, NULL) \
	ROW(QUEUED_STATUS, "GetQueuedCompletionStatus", "wait", "timeout_ns", NULL, NULL) \
	ROW(QUEUED_STATUS_EX, "GetQueuedCompletionStatusEx", "wait", "timeout_ns", NULL, NULL) \
	ROW(WSA_OVERLAPPED_RESULT, "WSAGetOverlappedResult", "wait", "timeout_ns", NULL, NULL) \
	ROW(OVERLAPPED_RESULT, "GetOverlappedResult", "wait", "timeout_ns", NULL, NULL) \
	ROW(WSA_WAIT_EVENTS, "WSAWaitForMultipleEvents", "block", "timeout_ns", NULL, NULL) \
	ROW(WAIT_ONE, "WaitForSingleObject", "block", "timeout_ns", NULL, NULL) \
	ROW(WAIT_ONE_EX, "WaitForSingleObjectEx", "block", "timeout_ns", NULL, NULL) \
	ROW(WAIT_SEVERAL, "WaitForMultipleObjects", "block", "timeout_ns", NULL, NULL) \
	ROW(WAIT_SEVERAL_EX, "WaitForMultipleObjectsEx", "block", "timeout_ns", NULL, NULL) \
	ROW(SLEEP, "Sleep", "sleep", "timeout_ns", NULL, NULL) \
	ROW(SLEEP_EX, "SleepEx", "sleep", "timeout_ns", NULL, NULL) \
	ROW(GET_ADDR_INFO, "getaddrinfo", "resolve", NULL, NULL, NULL) \
	ROW(GET_ADDR_INFO_W, "GetAddrInfoW", "resolve", NULL, NULL, NULL) \
	ROW(GET_HOST_BY_NAME, "gethostbyname", "resolve", NULL, NULL, NULL) \
	ROW(COMPLETION, "completion", NULL, NULL, NULL, NULL) \
	ROW(TUNE, "bw-accel", "tune", "asked", NULL, NULL) \
	ROW(NOTE, "note", NULL, NULL, NULL, NULL)

#define WATCH_ID(id, name, call, first, second, third) WATCH_##id,
enum watch_function { WATCH_FUNCTIONS(WATCH_ID) WATCH_FUNCTION_COUNT };
#undef WATCH_ID

#endif
