/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: files that nobody else may read, and memory that is wiped. */
#include "port/port_secret.h"
#include "port/windows/port_win32_errno.h"

#include <windows.h>

#include <aclapi.h>
#include <errno.h>
#include <stdbool.h>

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, TOKEN_USER_BYTES = 256 };

/* Rights by which a key is learnt or replaced. */
#define RIGHTS (FILE_READ_DATA | FILE_WRITE_DATA | FILE_APPEND_DATA | WRITE_DAC | WRITE_OWNER | GENERIC_READ | GENERIC_WRITE | GENERIC_ALL)

const char *port_secret_allowed(void)
{
	return "a file that its owner, SYSTEM, administrators and the service's own account alone may read and write";
}

/* Is this the user that this process runs as? */
static bool is_own_user(PSID sid)
{
	union {
		TOKEN_USER user;
		BYTE bytes[TOKEN_USER_BYTES];
	} own;
	HANDLE token;
	DWORD size;
	bool same;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return false;
	same = GetTokenInformation(token, TokenUser, &own, sizeof(own), &size) && EqualSid(own.user.User.Sid, sid);
	CloseHandle(token);
	return same;
}

/* Is this the account of the one service that this process is? */
static bool is_own_service(PSID sid)
{
	static const SID_IDENTIFIER_AUTHORITY nt = { SECURITY_NT_AUTHORITY };
	const BYTE *authority = GetSidIdentifierAuthority(sid)->Value;
	BOOL member = FALSE;

	for (int i = 0; i < 6; i++)
		if (authority[i] != nt.Value[i])
			return false;
	return *GetSidSubAuthorityCount(sid) && *GetSidSubAuthority(sid, 0) == SECURITY_SERVICE_ID_BASE_RID &&
	       CheckTokenMembership(NULL, sid, &member) && member;
}

static bool is_trusted(PSID sid, PSID owner)
{
	return EqualSid(sid, owner) || IsWellKnownSid(sid, WinLocalSystemSid) || IsWellKnownSid(sid, WinBuiltinAdministratorsSid) ||
	       IsWellKnownSid(sid, WinCreatorOwnerRightsSid) || is_own_user(sid) || is_own_service(sid);
}

/* Does an entry give one of RIGHTS to somebody who is not trusted? One of a kind that is not known here might. */
static bool gives_away(ACE_HEADER *entry, PSID owner)
{
	ACCESS_ALLOWED_ACE *allowed = (ACCESS_ALLOWED_ACE *)(void *)entry;

	if (entry->AceFlags & INHERIT_ONLY_ACE || entry->AceType == ACCESS_DENIED_ACE_TYPE)
		return false;
	if (entry->AceType != ACCESS_ALLOWED_ACE_TYPE)
		return true;
	return (allowed->Mask & RIGHTS) && !is_trusted(&allowed->SidStart, owner);
}

/* Return 0 for a file on a disk that nobody else may read or write. */
static int check_file(HANDLE file)
{
	PSECURITY_DESCRIPTOR descriptor;
	PSID owner;
	PACL list;
	void *entry;
	int err = 0;

	if (GetFileType(file) != FILE_TYPE_DISK)
		return -EPERM;
	if (GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, NULL, &list, NULL,
			    &descriptor))
		return -EPERM;
	if (!list) /* no list: everybody may */
		err = -EPERM;
	for (DWORD i = 0; list && i < list->AceCount && !err; i++)
		if (!GetAce(list, i, &entry) || gives_away(entry, owner))
			err = -EPERM;
	LocalFree(descriptor);
	return err;
}

int64_t port_secret_read(const char *path, void *data, size_t size_bytes)
{
	HANDLE file = CreateFileA(path, GENERIC_READ, SHARE_ALL, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
	DWORD length = 0;
	int err;

	if (file == INVALID_HANDLE_VALUE)
		return win32_errno_of(GetLastError());
	err = check_file(file);
	if (!err && !ReadFile(file, data, (DWORD)size_bytes, &length, NULL))
		err = win32_errno_of(GetLastError());
	if (!err && length == size_bytes)
		err = -EFBIG;
	CloseHandle(file);
	if (err)
		port_secret_wipe(data, size_bytes);
	return err ? err : (int64_t)length;
}

void port_secret_wipe(void *data, size_t size_bytes)
{
	SecureZeroMemory(data, size_bytes);
}
