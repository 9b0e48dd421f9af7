/* SPDX-License-Identifier: Apache-2.0 */
/* What the time service writes into its page: the line after each batch, and the status. */
#ifndef BW_TIMESERVICE_SERVICE_PAGE_H
#define BW_TIMESERVICE_SERVICE_PAGE_H

#include "timeservice/service.h"

/** Select, and publish what follows. @param told  log it as a batch. @return 0 or -errno */
int service_publish(struct service *service, bool told);
/** Publish the last line again, without a slew that is over, or in another state. */
int service_publish_again(struct service *service, uint32_t state, uint32_t reason);
/** Say that there is no time. */
int service_withdraw(struct service *service, uint32_t state, uint32_t reason);
/** Is a slew of the published line over? */
bool service_settled(const struct service *service);
void service_publish_status(struct service *service);

#endif
