/* SPDX-License-Identifier: Apache-2.0 */
#include "local_socket/port_user_share.h"

#include <errno.h>
#include <stdio.h>

void user_use_add(struct user_use *use, bool by_user)
{
	use->all++;
	use->of_user += by_user;
}

int user_share_refuses(struct user_share *share, const char *tool, uid_t uid, struct user_use use)
{
	const bool has_all = uid && use.of_user >= share->of_user;

	if (!has_all && use.all < share->all - (uid ? share->for_root : 0))
		return 0;
	if (uid && uid != share->said)
		fprintf(stderr, "%s: user %u has no more %s: %d in use, %d of them the user's, of %d for a user and %d for all but root\n",
			tool, (unsigned int)uid, share->what, use.all, use.of_user, share->of_user, share->all - share->for_root);
	share->said = uid;
	return has_all ? -EDQUOT : -ENOSPC;
}
