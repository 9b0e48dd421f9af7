@rem SPDX-License-Identifier: Apache-2.0
@rem Prepare a Windows machine to be measured, say what it is, and put it back. Run as an administrator, from cmd.exe:
@rem   provision.cmd [--interface "NAME"] check^|apply^|restore^|facts
@"%~dp0bw-provision.exe" %*
@exit /b %ERRORLEVEL%
