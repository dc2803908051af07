"""SVG charts that are readable on light and dark pages: rows of dots on a logarithmic axis, and rows of bars."""

import math
from xml.sax.saxutils import escape

WIDTH, LABELS, VALUES = 960, 260, 190
LEFT, RIGHT = LABELS, WIDTH - VALUES
ROW, TOP, BOTTOM = 24, 74, 34
STYLE = """
  .back { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .grid { stroke: #d1d9e0 }
  .s0 { fill: #8ab4e8; stroke: #8ab4e8 } .s1 { fill: #2f7fd6; stroke: #2f7fd6 } .s2 { fill: #0b3d7a; stroke: #0b3d7a }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 } .grid { stroke: #30363d }
    .s0 { fill: #2a5c99; stroke: #2a5c99 } .s1 { fill: #4f9bea; stroke: #4f9bea } .s2 { fill: #bcdcff; stroke: #bcdcff }
  }"""


def dots(title, subtitle, unit, series, rows):
    """`rows` are (label, is ours, [(median, lowest, highest) or None for each of `series`])."""
    values = [value for _, _, points in rows for point in points if point for value in point if value > 0]
    if not values:
        return document(title, subtitle, series, 0, [])
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def across(value):
        return LEFT + (math.log10(max(value, 10**low)) - low) / (high - low) * (RIGHT - LEFT)

    parts, foot = [], TOP + ROW * len(rows)
    for power in range(low, high + 1):
        parts += [line(across(10**power), TOP - 6, across(10**power), foot, "grid")]
        parts += [text(across(10**power), foot + 18, short(10**power), "quiet", "middle")]
    parts.append(text(RIGHT + 40, foot + 18, unit, "quiet"))
    for index, (label, is_ours, points) in enumerate(rows):
        middle = TOP + ROW * index + ROW / 2
        parts.append(row_label(label, is_ours, middle))
        for number, point in enumerate(points):
            if point:
                median, lowest, highest = point
                # Beside each other, so that equal ones are all seen.
                at = middle + (number - (len(points) - 1) / 2) * 5
                style = f"s{number}" if len(points) > 1 else "s1"
                parts.append(line(across(lowest), at, across(highest), at, style, 2))
                parts.append(f'<circle cx="{across(median):.1f}" cy="{at:.1f}" r="4.5" class="{style}"/>')
        measured = [point[0] for point in points if point]
        if measured:
            parts.append(row_value(" / ".join(short(value) for value in measured), middle))
    return document(title, subtitle, series, len(rows), parts)


def bars(title, subtitle, unit, series, rows):
    """`rows` are (label, is ours, [value for each of `series`]), stacked."""
    most = max((sum(values) for _, _, values in rows), default=0) or 1
    parts, foot = [], TOP + ROW * len(rows)
    step = 10 ** math.floor(math.log10(most))
    step = step if most / step >= 4 else step / 2 if most / step >= 2 else step / 5
    for number in range(math.floor(most / step) + 1):
        at = LEFT + number * step / most * (RIGHT - LEFT)
        parts += [line(at, TOP - 6, at, foot, "grid"), text(at, foot + 18, short(number * step), "quiet", "middle")]
    parts.append(text(RIGHT + 40, foot + 18, unit, "quiet"))
    for index, (label, is_ours, values) in enumerate(rows):
        top, at = TOP + ROW * index, LEFT
        parts.append(row_label(label, is_ours, top + ROW / 2))
        for number, value in enumerate(values):
            width = value / most * (RIGHT - LEFT)
            if width > 0:
                parts.append(f'<rect x="{at:.1f}" y="{top + 4}" width="{width:.1f}" height="{ROW - 8}" class="s{number * 2}"/>')
            at += width
        parts.append(row_value(short(sum(values)), top + ROW / 2))
    return document(title, subtitle, series, len(rows), parts)


def document(title, subtitle, series, rows, parts):
    height = TOP + ROW * rows + BOTTOM
    classes = ["s0", "s2"] if len(series) == 2 else [f"s{number}" for number in range(len(series))]
    legend, at = [], LEFT
    for name, style in zip(series, classes):
        legend += [f'<circle cx="{at + 6}" cy="56" r="5.5" class="{style}"/>', text(at + 18, 60.5, name, "text")]
        at += 40 + 7.2 * len(name)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"',
        f' font-family="system-ui, sans-serif" font-size="13">\n<title>{escape(title)}</title>\n<style>{STYLE}\n</style>',
        f'\n<rect class="back" width="{WIDTH}" height="{height}" rx="6"/>\n',
        f'<text x="16" y="26" class="text" font-size="16" font-weight="600">{escape(title)}</text>\n',
    ]
    return "".join(head) + "\n".join([text(16, 44, subtitle, "quiet"), *legend, *parts]) + "\n</svg>\n"


def row_label(label, is_ours, middle):
    weight = ' font-weight="700"' if is_ours else ""
    return f'<text x="{LEFT - 14}" y="{middle + 4.5:.1f}" class="text" text-anchor="end"{weight}>{escape(label)}</text>'


def row_value(value, middle):
    return text(RIGHT + 12, middle + 4.5, value, "quiet")


def text(x, y, words, style, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, style, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}" stroke-width="{width}"/>'


def short(value):
    """A number that fits under an axis."""
    if value >= 1000:
        return f"{value / 1000:.3g}k"
    return f"{value:.3g}"
