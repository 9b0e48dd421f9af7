# SPDX-License-Identifier: Apache-2.0
"""What the suites can do: a Robot resource per capability, keyword libraries, the procedures behind them."""
