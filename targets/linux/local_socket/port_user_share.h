/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what a service has is whose: a service of several users has something for each, and for root at any time. */
#ifndef BW_PORT_USER_SHARE_H
#define BW_PORT_USER_SHARE_H

#include <stdbool.h>
#include <sys/types.h>

struct user_share {
	const char *what; /* several of them, for messages */
	int all, for_root; /* the last ones are root's alone */
	int of_user;       /* as many as one user other than root has at most */
	uid_t said;        /* who was refused the last time; 0: nobody */
};

/* How many are in use: by everybody, and by the user who wants one more. */
struct user_use {
	int all, of_user;
};

/** Count one more that is in use. */
void user_use_add(struct user_use *use, bool by_user);

/**
 * Whether a user may have one more. A refusal of a user other than root is said on stderr, of several in a row once, by the limit.
 *
 * @param tool who says it
 * @return 0; -EDQUOT: no user has more; -ENOSPC: there are none, or none but for root
 */
int user_share_refuses(struct user_share *share, const char *tool, uid_t uid, struct user_use use);

#endif
