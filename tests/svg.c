/*
 * Cells to SVG. Text keeps its cells by a list of x positions, one a glyph. Lines, blocks and
 * braille are shapes instead of glyphs, so that they meet without seams and need no font. A cell
 * is 8.5 x 18 units for a font of 14, which makes every edge a whole pixel when drawn at twice the
 * size.
 */
#include "tests/svg.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UP = 1, RIGHT = 2, DOWN = 4, LEFT = 8 };

static const double cell_w = 8.5, cell_h = 18, margin = 12, bar_h = 34, baseline = 13.5;
static const unsigned paper = 0x11161d, ink = 0xc9d1d9;
static const unsigned palette[16] = {0x11161d, 0xff5c57, 0x5bc873, 0xffb224, 0x4aa5ff, 0xc792ea,
                                     0x39c5cf, 0xc9d1d9, 0x7d8590, 0xff7b72, 0x7ee787, 0xffd866,
                                     0x79c0ff, 0xd2a8ff, 0x56d4dd, 0xffffff};

struct look {
    unsigned fg, bg;
    bool bold, italic, underline, strike;
};

static unsigned
rgb(int colour, unsigned fallback)
{
    static const unsigned steps[] = {0, 95, 135, 175, 215, 255};

    if (colour == VT_DEFAULT)
        return fallback;
    if (colour >= 0x1000000)
        return (unsigned)colour & 0xffffff;
    if (colour < 16)
        return palette[colour];
    unsigned c = (unsigned)colour - 16;
    if (c < 216)
        return steps[c / 36] << 16 | steps[c / 6 % 6] << 8 | steps[c % 6];
    return (8 + 10 * (c - 216)) * 0x10101;
}

static struct look
look_of(const struct vt_cell *c)
{
    struct look look = {.fg = rgb(c->fg, ink),
                        .bg = rgb(c->bg, paper),
                        .bold = c->bold,
                        .italic = c->italic,
                        .underline = c->underline,
                        .strike = c->strike};

    if (c->reverse) {
        unsigned fg = look.fg;
        look.fg = look.bg;
        look.bg = fg;
    }
    return look;
}

static bool
is_same_text(const struct look *a, const struct look *b)
{
    return a->fg == b->fg && a->bold == b->bold && a->italic == b->italic;
}

static double
left_of(int col)
{
    return margin + col * cell_w;
}

static double
top_of(int row)
{
    return bar_h + row * cell_h;
}

static void
rect(FILE *out, const double box[4], unsigned colour, const char *more)
{
    fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#%06x\"%s/>\n", box[0],
            box[1], box[2], box[3], colour, more);
}

/* --- shapes ----------------------------------------------------------------------------------- */

/* The arms of a box drawing character, or 0 if the character is not one we draw. Arcs become
 * corners. */
static unsigned
arms_of(uint32_t c)
{
    static const struct {
        uint32_t c;
        unsigned arms;
    } known[] = {
        {0x2500, LEFT | RIGHT            },
        {0x2502, UP | DOWN               },
        {0x250c, RIGHT | DOWN            },
        {0x2510, LEFT | DOWN             },
        {0x2514, RIGHT | UP              },
        {0x2518, LEFT | UP               },
        {0x251c, UP | DOWN | RIGHT       },
        {0x2524, UP | DOWN | LEFT        },
        {0x252c, LEFT | RIGHT | DOWN     },
        {0x2534, LEFT | RIGHT | UP       },
        {0x253c, LEFT | RIGHT | UP | DOWN},
        {0x256d, RIGHT | DOWN            },
        {0x256e, LEFT | DOWN             },
        {0x256f, LEFT | UP               },
        {0x2570, RIGHT | UP              },
        {0x2574, LEFT                    },
        {0x2575, UP                      },
        {0x2576, RIGHT                   },
        {0x2577, DOWN                    },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].c == c)
            return known[i].arms;
    return 0;
}

static void
draw_arms(FILE *out, double x, double y, unsigned arms, unsigned colour)
{
    double cx = x + cell_w / 2, cy = y + cell_h / 2;

    fprintf(out, "<path d=\"");
    if (arms & UP)
        fprintf(out, "M%g %gV%g", cx, y, cy + 0.5);
    if (arms & DOWN)
        fprintf(out, "M%g %gV%g", cx, cy - 0.5, y + cell_h);
    if (arms & LEFT)
        fprintf(out, "M%g %gH%g", x, cy, cx + 0.5);
    if (arms & RIGHT)
        fprintf(out, "M%g %gH%g", cx - 0.5, cy, x + cell_w);
    fprintf(out, "\" stroke=\"#%06x\"/>\n", colour);
}

/* The part of its cell that a block element fills, in eighths: x, y, width, height. */
static bool
block_of(uint32_t c, double part[4])
{
    double low = c - 0x2580, left = 0x2590 - c; /* eighths of the lower and of the left blocks */
    bool is_low = c >= 0x2581 && c <= 0x2588, is_left = c >= 0x2589 && c <= 0x258f;
    const double shade[4] = {0, 0, 8, 8};

    if (is_low)
        memcpy(part, (const double[4]){0, 8 - low, 8, low}, sizeof shade);
    else if (is_left)
        memcpy(part, (const double[4]){0, 0, left, 8}, sizeof shade);
    else if (c == 0x2580)
        memcpy(part, (const double[4]){0, 0, 8, 4}, sizeof shade);
    else if (c == 0x2590)
        memcpy(part, (const double[4]){4, 0, 4, 8}, sizeof shade);
    else if (c >= 0x2591 && c <= 0x2593)
        memcpy(part, shade, sizeof shade);
    else
        return false;
    return true;
}

static void
draw_block(FILE *out, double x, double y, const double part[4], unsigned colour, uint32_t c)
{
    static const char *const shades[] = {" fill-opacity=\"0.25\"", " fill-opacity=\"0.5\"",
                                         " fill-opacity=\"0.75\""};
    const double box[4] = {x + part[0] * cell_w / 8, y + part[1] * cell_h / 8, part[2] * cell_w / 8,
                           part[3] * cell_h / 8};

    rect(out, box, colour, c >= 0x2591 && c <= 0x2593 ? shades[c - 0x2591] : "");
}

static void
draw_braille(FILE *out, double x, double y, unsigned dots, unsigned colour)
{
    static const int places[8][2] = {
        {0, 0},
        {0, 1},
        {0, 2},
        {1, 0},
        {1, 1},
        {1, 2},
        {0, 3},
        {1, 3}
    };

    if (dots == 0)
        return;
    fputs("<path d=\"", out); /* one path for all dots: charts have thousands */
    for (int i = 0; i < 8; i++)
        if (dots >> i & 1)
            fprintf(out, "M%g %gh3v3h-3z", x + 0.75 + places[i][0] * cell_w / 2,
                    y + 0.75 + places[i][1] * 4.5);
    fprintf(out, "\" fill=\"#%06x\"/>\n", colour);
}

static uint32_t
first_char(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;

    if (u[0] < 0x80)
        return u[0];
    if (u[0] < 0xe0)
        return (u[0] & 0x1fU) << 6 | (u[1] & 0x3fU);
    if (u[0] < 0xf0)
        return (u[0] & 0xfU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU);
    return (u[0] & 7U) << 18 | (u[1] & 0x3fU) << 12 | (u[2] & 0x3fU) << 6 | (u[3] & 0x3fU);
}

/* Draws the cell as a shape. Returns false if its character is text. With out NULL nothing is
 * drawn. */
static bool
draw_shape(FILE *out, double x, double y, const char *text, unsigned colour)
{
    uint32_t c = first_char(text);
    unsigned arms = arms_of(c);
    double part[4];
    bool is_block = block_of(c, part), is_braille = c >= 0x2800 && c <= 0x28ff;

    if (out && arms)
        draw_arms(out, x, y, arms, colour);
    if (out && is_block)
        draw_block(out, x, y, part, colour, c);
    if (out && is_braille)
        draw_braille(out, x, y, c - 0x2800, colour);
    return arms || is_block || is_braille;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void
put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
}

static void
draw_paper(FILE *out, const struct vt *vt, int row)
{
    for (int col = 0, end; col < vt->cols; col = end) {
        struct vt_cell cell = vt_cell(vt, row, col);
        unsigned bg = look_of(&cell).bg;
        for (end = col + 1; end < vt->cols; end++) {
            struct vt_cell next = vt_cell(vt, row, end);
            if (look_of(&next).bg != bg)
                break;
        }
        const double box[4] = {left_of(col), top_of(row), (end - col) * cell_w, cell_h};
        if (bg != paper)
            rect(out, box, bg, "");
    }
}

static void
draw_lines_and_shapes(FILE *out, const struct vt *vt, int row)
{
    for (int col = 0; col < vt->cols; col++) {
        struct vt_cell cell = vt_cell(vt, row, col);
        struct look look = look_of(&cell);
        double x = left_of(col), y = top_of(row);
        draw_shape(out, x, y, cell.text, look.fg);
        if (look.underline)
            rect(out, (const double[4]){x, y + 15.5, cell_w, 1}, look.fg, "");
        if (look.strike)
            rect(out, (const double[4]){x, y + 9, cell_w, 1}, look.fg, "");
    }
}

static bool
is_glyph(const struct vt_cell *cell)
{
    return cell->text[0] && strcmp(cell->text, " ") != 0 && !draw_shape(NULL, 0, 0, cell->text, 0);
}

/* An open run of text: its look, its characters, and the column after the last character. */
struct run {
    struct look look;
    char *text;
    size_t len;
    int end;
    bool is_ascii;
};

static void
close_run(FILE *out, struct run *run, int row)
{
    if (run->len == 0)
        return;
    fprintf(out, "\" y=\"%g\" fill=\"#%06x\"%s%s>", top_of(row) + baseline, run->look.fg,
            run->look.bold ? " font-weight=\"700\"" : "",
            run->look.italic ? " font-style=\"italic\"" : "");
    put_escaped(out, run->text);
    fputs("</text>\n", out);
    run->len = 0;
}

static void
add_to_run(FILE *out, struct run *run, int col, const char *text)
{
    fprintf(out, "%s%g", run->len > 0 ? " " : "<text x=\"", left_of(col));
    memcpy(run->text + run->len, text, strlen(text) + 1);
    run->len += strlen(text);
    run->end = col + 1;
}

/*
 * One <text> for each run of one look. Some renderers take only the first x of the list and go on
 * by the font's own widths, so a run ends where that could go wrong: at a gap and around anything
 * that may come from another font.
 */
static void
draw_text(FILE *out, const struct vt *vt, int row)
{
    struct run run = {.text = calloc((size_t)vt->cols + 1, sizeof(struct vt_cell))};

    for (int col = 0; run.text && col < vt->cols; col++) {
        struct vt_cell cell = vt_cell(vt, row, col);
        struct look look = look_of(&cell);
        bool is_ascii = (unsigned char)cell.text[0] < 0x80;
        if (!is_glyph(&cell))
            continue;
        if (!run.is_ascii || !is_ascii || col > run.end + 1 || !is_same_text(&look, &run.look))
            close_run(out, &run, row);
        if (run.len > 0 && col > run.end)
            add_to_run(out, &run, run.end, " ");
        add_to_run(out, &run, col, cell.text);
        run.look = look;
        run.is_ascii = is_ascii;
    }
    if (run.text)
        close_run(out, &run, row);
    free(run.text);
}

static void
draw_cursor(FILE *out, const struct vt *vt)
{
    int row, col;

    vt_cursor(vt, &row, &col);
    if (vt->is_cursor_shown)
        rect(out, (const double[4]){left_of(col), top_of(row), cell_w, cell_h}, ink,
             " fill-opacity=\"0.6\"");
}

bool
svg_write(const struct vt *vt, const char *path)
{
    FILE *out = fopen(path, "we");
    double w = 2 * margin + vt->cols * cell_w, h = bar_h + vt->rows * cell_h + margin;
    static const unsigned dots[] = {0xed5c52, 0xe0aa3c, 0x57b35c};

    if (!out)
        return false;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\">\n<rect width=\"%g\" height=\"%g\" rx=\"9\" fill=\"#%06x\"/>\n",
            w, h, w, h, w, h, paper);
    for (int i = 0; i < 3; i++)
        fprintf(out, "<circle cx=\"%d\" cy=\"17\" r=\"5.5\" fill=\"#%06x\"/>\n", 20 + 18 * i,
                dots[i]);
    fputs("<g shape-rendering=\"crispEdges\" fill=\"none\">\n", out);
    for (int row = 0; row < vt->rows; row++)
        draw_paper(out, vt, row);
    for (int row = 0; row < vt->rows; row++)
        draw_lines_and_shapes(out, vt, row);
    draw_cursor(out, vt);
    fputs("</g>\n<g font-family=\"JetBrains Mono, DejaVu Sans Mono, monospace\" font-size=\"14\" "
          "letter-spacing=\"0.1\" xml:space=\"preserve\">\n",
          out);
    for (int row = 0; row < vt->rows; row++)
        draw_text(out, vt, row);
    fputs("</g>\n</svg>\n", out);
    return fclose(out) == 0;
}
