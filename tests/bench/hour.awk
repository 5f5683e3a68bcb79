# Draws the series of `make bench T=hour` (hour.sh): a panel for each column, with its highest value beside its name. Input:
# values with tabs between them; the first line has the names, the first column is the time in seconds. A negative value is
# no value: it is not drawn. -v title=TEXT.
# -v events=FILE: lines of second, tab, word. Each becomes a line through all panels, with the word below.
function xml(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); return s }
function number(v) { return v >= 100 ? sprintf("%.0f", v) : sprintf("%.1f", v) }
BEGIN { FS = "\t"; width = 760; height = 44; left = 150; step = height + 10; top = 34 }
NR == 1 { columns = NF; for (i = 1; i <= NF; i++) name[i] = $i; next }
{ rows++; for (i = 1; i <= NF; i++) { v[rows, i] = $i; if ($i > most[i]) most[i] = $i } }
END {
    if (!rows) { print "no rows" >"/dev/stderr"; exit 1 }
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", left + width + 20, top + step * (columns - 1) + (events != "" && (getline line < events) > 0 ? 110 : 24)
    close(events)
    print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    printf "<text x=\"10\" y=\"20\" font-size=\"13\">%s</text>\n", xml(title)
    for (i = 2; i <= columns; i++) {
        base = top + step * (i - 2) + height
        printf "<text x=\"10\" y=\"%d\">%s</text><text x=\"10\" y=\"%d\" fill=\"#777\">at most %s</text>\n", base - 22, xml(name[i]), base - 6, number(most[i])
        printf "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ccc\"/><polyline fill=\"none\" stroke=\"#26c\" points=\"", left, base, left + width, base
        for (r = 1; r <= rows; r++) if (v[r, i] >= 0) printf "%.0f,%.1f ", left + width * v[r, 1] / v[rows, 1], base - (most[i] > 0 ? height * v[r, i] / most[i] : 0)
        print "\"/>"
    }
    while (events != "" && (getline line < events) > 0) {
        split(line, event, "\t"); x = left + width * event[1] / v[rows, 1]; base = top + step * (columns - 1)
        colour = event[2] ~ /^kill/ ? "#c33" : event[2] ~ /^snapshot/ ? "#283" : event[2] == "midnight" ? "#000" : event[2] == "pause" ? "#bbb" : "#a6a"
        printf "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\" stroke-dasharray=\"2,2\"/>\n", x, top, x, base, colour
        if (event[2] != "pause") printf "<text transform=\"translate(%.1f,%d) rotate(60)\" font-size=\"10\" fill=\"%s\">%s</text>\n", x - 2, base + 26, colour, xml(event[2])
    }
    printf "<text x=\"%d\" y=\"%d\" fill=\"#777\">0</text><text x=\"%d\" y=\"%d\" fill=\"#777\" text-anchor=\"end\">%d s</text>\n</svg>\n", left, base + 16, left + width, base + 16, v[rows, 1]
}
