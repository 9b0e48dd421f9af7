/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's tests include what its own build writes; ours has nothing to say there. */
