/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lwIP as the user-mode stack has it: IP, ICMP, UDP and TCP of one program, called by one thread at a time. Addresses, routes,
 * neighbours, names and leases are the host's.
 */
#ifndef BW_LWIPOPTS_H
#define BW_LWIPOPTS_H

#include <stdint.h>

/* What cannot be guessed by a peer: sequence numbers, ports. */
uint32_t stack_random(void);
#define LWIP_RAND() stack_random()
#define LWIP_HOOK_FILENAME "hooks.h"
/* lwIP's own sums two bytes at a time. */
uint16_t stack_checksum(const void *data, int length);
#define LWIP_CHKSUM stack_checksum

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_TIMERS 1
#define LWIP_TIMERS_CUSTOM 0

/* Memory is the program's. */
#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 8
#define PBUF_LINK_HLEN 16
#define LWIP_SUPPORT_CUSTOM_PBUF 1

/* Below IP there is the packet path: no Ethernet, no neighbours. */
#define LWIP_ARP 0
#define LWIP_ETHERNET 0
#define LWIP_DHCP 0
#define LWIP_AUTOIP 0
#define LWIP_DNS 0
#define LWIP_IGMP 0
#define LWIP_IPV4 1
#define LWIP_IPV6 1
#define IPV6_FRAG_COPYHEADER 1 /* pointers do not fit where the header was */
#define LWIP_IPV6_MLD 0
#define LWIP_IPV6_DHCP6 0
#define LWIP_IPV6_AUTOCONFIG 0
#define LWIP_IPV6_SEND_ROUTER_SOLICIT 0
#define LWIP_IPV6_DUP_DETECT_ATTEMPTS 0
#define LWIP_IPV6_SCOPES 0
#define LWIP_ND6_ALLOW_RA_UPDATES 0
#define LWIP_ND6_TCP_REACHABILITY_HINTS 0
#define LWIP_HAVE_LOOPIF 0
#define LWIP_NETIF_LOOPBACK 0
#define LWIP_RAW 0
#define IP_FORWARD 0
#define IP_REASSEMBLY 1
#define IP_FRAG 1
/* Fragments that wait for others: of some datagrams of 64 KB. */
#define IP_REASS_MAX_PBUFS 512
#define MEMP_NUM_REASSDATA 64
#define IPV6_FRAG_COPYHEADER 1
#define IP_SOF_BROADCAST 1
#define SO_REUSE 1

/* Large enough for messages of 640 KB over a link of 10 Gbit/s; a segment never leaves its path's MTU. */
#define TCP_MSS 8948
#define LWIP_WND_SCALE 1
#define TCP_RCV_SCALE 7
#define TCP_WND (4 * 1024 * 1024)
#define TCP_SND_BUF (4 * 1024 * 1024)
#define TCP_SND_QUEUELEN 16384
#define TCP_SNDLOWAT 16384
#define TCP_SNDQUEUELOWAT (TCP_SND_QUEUELEN / 2)
#define MEMP_NUM_TCP_SEG TCP_SND_QUEUELEN
#define TCP_OVERSIZE TCP_MSS
#define TCP_QUEUE_OOSEQ 1
/* Segments out of order that a peer can make a connection hold: a whole window of small ones, not one of single bytes. */
#define TCP_OOSEQ_MAX_PBUFS 8192
#define LWIP_TCP_SACK_OUT 1
#define LWIP_TCP_MAX_SACK_NUM 4
#define LWIP_TCP_TIMESTAMPS 0
/* Losses are found and repaired by core/recovery.c; a connection begins with ten segments (RFC 6928). */
#define LWIP_TCP_RECOVERY 1
#define LWIP_TCP_CALC_INITIAL_CWND(mss) ((tcpwnd_size_t)LWIP_MIN(10U * (mss), LWIP_MAX(2U * (mss), 14600U)))
#define LWIP_TCP_KEEPALIVE 1
#define LWIP_TCP_PCB_NUM_EXT_ARGS 1
#define TCP_LISTEN_BACKLOG 1
#define TCP_CALCULATE_EFF_SEND_MSS 1
#define TCP_MSL 30000UL

#define LWIP_STATS 1
#define LWIP_STATS_LARGE 1
#define MEM_STATS 0
#define MEMP_STATS 0
#define SYS_STATS 0
#define LWIP_STATS_DISPLAY 0

#endif
