# SPDX-License-Identifier: Apache-2.0
"""The figure of a loop's worst moment: pictures side by side, with the tracker's box and the true place."""

from __future__ import annotations

import re
from base64 import b64encode

from reports.control_loops.case import Case
from reports.control_loops.worst import EACH_SIDE, ShownPicture, WorstMoment
from reports.png import grey_png
from reports.svg import INKS, new_figure, style, to_svg

NS_PER_S = 1_000_000_000
LEVELS = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "none"}
_IMAGE = re.compile(r'xlink:href="data:image/png;base64,[^"]*"')


def title_of(picture: ShownPicture) -> str:
    """Return in two lines which picture it is, when it was captured, how far the target is off."""
    off = f"{picture.off_px:.1f} px off" + (", out" if picture.is_out else "")
    off += ", warm-up" if picture.is_warm_up else ""
    off += ", edge" if picture.is_at_edge else ""
    if picture.seen_px is None:
        off += ", no command: no box"
    return f"picture {picture.number}, {picture.captured_ns / NS_PER_S:.2f} s\n{off}"


def figure_worst(name: str, found: WorstMoment) -> str:
    """Draw the pictures; the worst one has a frame.

    Args:
        name: Short name, unique on the page.
        found: The moment.
    """
    with style(name):
        figure = new_figure(11.6, 2.5)
        every = figure.subplots(1, 2 * EACH_SIDE + 1)
        for axes, picture in zip(every, found.pictures, strict=False):
            height, width = picture.pixels.shape
            axes.imshow(picture.pixels, **LEVELS)
            axes.set_title(title_of(picture), fontsize=8)
            axes.plot(*picture.target_px, "+", color=INKS["fail"], markersize=7, markeredgewidth=1)
            if picture.seen_px is not None:
                (x, y), half = picture.seen_px, picture.half_px
                sides = [x - half, x + half, x + half, x - half, x - half], [y - half] * 2 + [y + half] * 2
                axes.plot(sides[0], [*sides[1], y - half], color=INKS["type1"], linewidth=1)
            axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), xticks=[], yticks=[])
            for side in axes.spines.values():
                side.set(visible=picture is found.worst, color=INKS["fail"], linewidth=1.2)
        for axes in every[len(found.pictures) :]:
            axes.set_axis_off()
        said = "; ".join(title_of(each).replace("\n", ", ") for each in found.pictures)
        svg = to_svg(figure, name, "Pictures around the loop's worst moment", f"{said}.")
    images = iter(found.pictures)

    def grey(_: re.Match[str]) -> str:
        """Return the same pixels in a byte each; matplotlib writes four."""
        return f'href="data:image/png;base64,{b64encode(grey_png(next(images).pixels)).decode()}"'

    return _IMAGE.sub(grey, svg)


def caption_of(case: Case, found: WorstMoment) -> str:
    """Return in words which moment it is, and what is drawn."""
    worst = found.worst
    return (
        f"The worst moment of all loops of a camera, {case.words}. In picture {worst.number} (framed,"
        f" {worst.captured_ns / NS_PER_S:.2f} s after the camera's start) the target is {worst.off_px:.1f} px"
        " off the centre. Two pictures further on is one delay of the loop later, or more. Cross: where the"
        " target really is; box: where the tracker saw it. Edge: the camera was told to look where its world"
        " ends, and could not. The pictures were made again from the seed."
    )
