"""What the lessons' pictures of execution have in common: their width, their text, their legends."""

from report import figures
from report.figures import TEXT, TINT

WIDTH, ON_DESKTOPS = 360, 480  # units; pixels where there is room
LEFT, RIGHT = 84, 352  # of the time axis
SIZE = 12  # of text
IDLE = 0.3  # opacity
ROW = 18
# On a dark page a tint of TINT is hardly seen.
ON_DARK = f'<style>@media (prefers-color-scheme: dark) {{ [fill-opacity="{TINT}"] {{ fill-opacity: 0.3 }} }}</style>\n'


class Svg(figures.Svg):
    def text(self, x, y, words, anchor="start", bold=False, colour=None):
        super().text(x, y, words, anchor=anchor, size=SIZE, bold=bold, colour=colour)

    def render(self, height):
        """As wide as the page allows, up to ON_DESKTOPS."""
        text = super().render(WIDTH, height).decode()
        sizes = 'width="{}" height="{}"'
        larger = sizes.format(ON_DESKTOPS, figures.number(height * ON_DESKTOPS / WIDTH))
        text = text.replace(sizes.format(WIDTH, figures.number(height)), larger, 1)
        return (text.replace("</desc>\n", f"</desc>\n{ON_DARK}", 1) if f'fill-opacity="{TINT}"' in text else text).encode()

    def lane(self, y, name):
        self.text(LEFT - 6, y + ROW / 2, name, anchor="end")

    def mark(self, x, y, colour):
        """A triangle that stands on Y + ROW."""
        self.add("path", d=f"M{figures.number(x)} {figures.number(y + 5)}l5 11h-10z", fill=colour)

    def legend(self, y, *entries):
        """ENTRIES: (how wide, draw(x), words), in rows that fit."""
        x = 4
        for width, draw, words in entries:
            if x + width > WIDTH:
                x, y = 4, y + ROW
            draw(x, y)
            self.text(x + 26, y + 7, words)
            x += width
        return y + ROW


def sample(svg, kind, colour):
    """For a legend."""
    if kind == "idle":
        return lambda x, y: svg.add("rect", x=x, y=y, width=20, height=14, fill=TEXT, fill_opacity=IDLE)
    if kind == "mark":
        return lambda x, y: svg.mark(x + 10, y - 2, colour)
    return lambda x, y: svg.box(x, y, 20, 14, colour, filled=kind, line=0.8 if kind == TINT else 0)
