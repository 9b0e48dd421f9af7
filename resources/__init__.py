# SPDX-License-Identifier: Apache-2.0
"""What the suites can do: one Robot resource per capability, thin keyword libraries, and the procedures behind them."""
