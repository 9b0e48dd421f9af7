/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include "congestion.h"
#include "hooks.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"

#define PORT 5000

extern const struct node node;

static const struct node_host *host;
static int end;
static unsigned int mtu_bytes;
static bool uses_ipv6;
static struct netif netif;
static struct tcp_pcb *connection;
static bool held;
static size_t waiting_bytes;

uint64_t stack_now_us(void)
{
	return host->now_us();
}

uint32_t stack_random(void)
{
	return host->random(end);
}

uint32_t stack_initial_sequence_number(const ip_addr_t *local_ip, uint16_t local_port, const ip_addr_t *remote_ip, uint16_t remote_port)
{
	(void)local_ip;
	(void)local_port;
	(void)remote_ip;
	(void)remote_port;
	return host->random(end);
}

u32_t sys_now(void)
{
	return (u32_t)(host->now_us() / 1000);
}

static err_t send_packet(const struct pbuf *packet)
{
	static uint8_t bytes[65536];

	host->output(end, bytes, pbuf_copy_partial(packet, bytes, packet->tot_len, 0));
	return ERR_OK;
}

int stack_has_ipv4(const ip4_addr_t *ip)
{
	return ip4_addr_cmp(netif_ip4_addr(&netif), ip);
}

/* An end takes each connection at once: none waits. */
int stack_accept_queue_is_full(const void *listener)
{
	(void)listener;
	return 0;
}

static err_t output_ipv4(struct netif *from, struct pbuf *packet, const ip4_addr_t *to)
{
	(void)from;
	(void)to;
	return send_packet(packet);
}

static err_t output_ipv6(struct netif *from, struct pbuf *packet, const ip6_addr_t *to)
{
	(void)from;
	(void)to;
	return send_packet(packet);
}

static err_t begin_netif(struct netif *made)
{
	made->name[0] = 's';
	made->name[1] = 'i';
	made->mtu = (u16_t)mtu_bytes;
	made->output = output_ipv4;
	made->output_ip6 = output_ipv6;
	return ERR_OK;
}

static ip_addr_t address_of(int which)
{
	ip_addr_t address;

	if (uses_ipv6)
		IP_ADDR6_HOST(&address, 0xfd000000, 0, 0, (u32_t)which + 1);
	else
		IP_ADDR4(&address, 10, 0, 0, (u8_t)(which + 1));
	return address;
}

static void begin(const struct node_host *its_host, int its_end, unsigned int its_mtu_bytes, int is_ipv6)
{
	ip4_addr_t address, mask, none = {0};
	ip_addr_t own;

	host = its_host;
	end = its_end;
	mtu_bytes = its_mtu_bytes;
	uses_ipv6 = is_ipv6 != 0;
	own = address_of(end);
	IP4_ADDR(&address, 10, 0, 0, (u8_t)(end + 1));
	IP4_ADDR(&mask, 255, 255, 255, 0);
	lwip_init();
	netif_add(&netif, &address, &mask, &none, NULL, begin_netif, ip_input);
	netif_set_default(&netif);
	if (uses_ipv6) {
		netif_ip6_addr_set(&netif, 0, ip_2_ip6(&own));
		netif_ip6_addr_set_state(&netif, 0, IP6_ADDR_PREFERRED);
	}
	netif_set_up(&netif);
	netif_set_link_up(&netif);
}

static err_t take(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t err)
{
	(void)argument;
	(void)err;
	if (!data) {
		host->closed(end, 0);
		return ERR_OK;
	}
	for (struct pbuf *part = data; part; part = part->next)
		host->received(end, part->payload, part->len);
	if (held)
		waiting_bytes += data->tot_len;
	else
		tcp_recved(pcb, data->tot_len);
	pbuf_free(data);
	return ERR_OK;
}

static err_t sent(void *argument, struct tcp_pcb *pcb, u16_t size_bytes)
{
	(void)argument;
	(void)pcb;
	(void)size_bytes;
	host->writable(end);
	return ERR_OK;
}

static void failed(void *argument, err_t err)
{
	(void)argument;
	connection = NULL;
	host->closed(end, err);
}

static void use(struct tcp_pcb *pcb)
{
	connection = pcb;
	tcp_nagle_disable(pcb);
	tcp_recv(pcb, take);
	tcp_sent(pcb, sent);
	tcp_err(pcb, failed);
}

static err_t accepted(void *argument, struct tcp_pcb *pcb, err_t err)
{
	(void)argument;
	if (err == ERR_OK)
		use(pcb);
	return err;
}

static err_t connected(void *argument, struct tcp_pcb *pcb, err_t err)
{
	(void)argument;
	(void)pcb;
	host->writable(end);
	return err;
}

static void begin_listening(void)
{
	struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);

	tcp_bind(pcb, IP_ANY_TYPE, PORT);
	tcp_accept(tcp_listen(pcb), accepted);
}

static void begin_connecting(void)
{
	struct tcp_pcb *pcb = tcp_new_ip_type(uses_ipv6 ? IPADDR_TYPE_V6 : IPADDR_TYPE_V4);
	ip_addr_t to = address_of(1 - end);

	use(pcb);
	tcp_connect(pcb, &to, PORT, connected);
}

static size_t send_some(const uint8_t *data, size_t size_bytes)
{
	size_t done = 0;

	while (connection && done < size_bytes) {
		size_t part = LWIP_MIN(LWIP_MIN(size_bytes - done, (size_t)tcp_sndbuf(connection)), 0x8000);

		if (part == 0 || tcp_write(connection, data + done, (u16_t)part, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
		done += part;
	}
	if (connection) {
		connection->recovery.program_waits = done < size_bytes;
		tcp_output(connection);
	}
	return done;
}

static void close_sending(void)
{
	if (connection)
		tcp_shutdown(connection, 0, 1);
}

static void input(const uint8_t *bytes, size_t size_bytes)
{
	struct pbuf *packet = pbuf_alloc(PBUF_RAW, (u16_t)size_bytes, PBUF_RAM);

	if (!packet)
		return;
	pbuf_take(packet, bytes, (u16_t)size_bytes);
	netif.input(packet, &netif);
}

static void advance(void)
{
	recovery_advance_us(host->now_us());
	sys_check_timeouts();
}

static uint64_t next_us(void)
{
	uint64_t next = recovery_next_us();
	u32_t wait_ms = sys_timeouts_sleeptime();

	if (wait_ms == SYS_TIMEOUTS_SLEEPTIME_INFINITE)
		return next;
	return LWIP_MIN(next, (host->now_us() / 1000 + wait_ms) * 1000);
}

static struct recovery recovery_of_connection(void)
{
	return connection ? connection->recovery : (struct recovery){0};
}

static void use_model(void)
{
	congestion_wanted = &congestion_model;
}

static void hold(int holds)
{
	held = holds != 0;
	while (connection && !held && waiting_bytes > 0) {
		u16_t part = (u16_t)LWIP_MIN(waiting_bytes, 0xffff);

		tcp_recved(connection, part);
		waiting_bytes -= part;
	}
}

const struct node node = {begin, begin_listening, begin_connecting, send_some, close_sending, input, advance, next_us, recovery_of_connection,
			  &recovery_limits, use_model, hold};
