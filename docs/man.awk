# Makes a manual page for man(1) of one page of this folder: awk -f man.awk queuetop.1.md >queuetop.1
#
# What a page may hold: a first line "# name(section): what it is"; headings (## and ###); a paragraph that is bold as a
# whole, which is a heading too; paragraphs; lists with - or 1. at the left margin, whose items go on with an indent; code
# between ``` or with an indent of 4; tables; pictures and HTML comments, which are left out. Inside a line: `code`,
# **bold**, *italic*, [text](link), and \ before a sign that stands for itself. Anything else ends the program with an error,
# because a page that forges show well and man shows badly is worse than none.

function die(what) { print FILENAME ":" FNR ": " what >"/dev/stderr"; failed = 1; exit 1 }

function plain(s) { # text that groff takes letter by letter
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s
}

# the text of one line of a paragraph, with the fonts that its signs ask for
function inline(s,   out, c, end, text) {
    out = ""
    while (s != "") {
        c = substr(s, 1, 1)
        if (c == "\\" && match(substr(s, 2, 1), /[^A-Za-z0-9 ]/)) { out = out plain(substr(s, 2, 1)); s = substr(s, 3); continue }
        if (c == "`") {
            end = index(substr(s, 2), "`")
            if (!end) die("a ` without its end on the same line")
            text = substr(s, 2, end - 1); gsub(/\\[|]/, "|", text)
            out = out "\\fB" plain(text) "\\fR"; s = substr(s, end + 2); continue
        }
        if (substr(s, 1, 2) == "**") { bold = !bold; out = out (bold ? "\\fB" : "\\fR"); s = substr(s, 3); continue }
        if (c == "*") { slant = !slant; out = out (slant ? "\\fI" : "\\fR"); s = substr(s, 2); continue }
        if (c == "[" && match(s, /^\[[^][]*\]\([^()]*\)/)) {
            text = substr(s, 2, index(s, "](") - 2)
            out = out inline_link(text, substr(s, length(text) + 4, RLENGTH - length(text) - 4)); s = substr(s, RLENGTH + 1); continue
        }
        out = out plain(c); s = substr(s, 2)
    }
    return out
}
# a link to another page of the manual is its name; any other says where it leads, as far as that is in its text
function inline_link(text, to) {
    gsub(/`/, "", text)
    if (to ~ /[.][0-9][.]md/) return "\\fB" plain(text) "\\fR"
    return plain(text)
}
function guarded(s) { return s ~ /^[.']/ ? "\\&" s : s }
function put(s) { print guarded(s) }
function ended() {
    if (bold || slant) die("bold or italic that does not end in its paragraph")
}

function cells(s,   n) { # of one line of a table: cell[1..n]
    gsub(/\\[|]/, "\001", s)
    sub(/^[|] */, "", s); sub(/ *[|] *$/, "", s)
    n = split(s, cell, / *[|] */)
    for (i = 1; i <= n; i++) gsub(/\001/, "|", cell[i])
    return n
}
# A row becomes a tagged paragraph: its first cells are the tag and its last the text; with more than three columns the
# first is the tag and the others are "title: text", where they are not empty.
function table_row(s,   n, i, tag, text) {
    n = cells(s)
    if (n != columns) die(n " cells in a table of " columns " columns")
    if (columns < 2) die("a table of one column")
    if (columns <= 3) {
        tag = cell[1]
        if (columns == 3 && cell[2] != "") tag = tag (tag != "" ? "  " : "") cell[2]
        text = cell[columns]
    } else {
        tag = cell[1]; text = ""
        for (i = 2; i <= n; i++) if (cell[i] != "") text = text (text != "" ? "; " : "") title[i] (title[i] != "" ? ": " : "") cell[i]
    }
    print ".TP"; put(inline(tag)); ended()
    if (text == "") text = " "
    put(inline(text)); ended()
}

NR == 1 {
    if (!match($0, /^# [a-z-]+\([1-9]\): /)) die("the first line is \"# name(section): what it is\"")
    head = substr($0, 3, RLENGTH - 4); what = substr($0, RLENGTH + 1)
    page = head; sub(/\(.*/, "", page); section = head; gsub(/[^0-9]/, "", section)
    print ".\\\" Made from docs/" page "." section ".md"
    print ".TH " toupper(plain(page)) " " section " \"\" \"queuetop " version "\" \"queuetop\""
    print ".nr HY 0\n.nh\n.ad l\n.SH NAME\n" plain(page) " \\- " plain(what)
    next
}
fence { if ($0 ~ /^```/) { fence = 0; print ".EE\n.RE" } else put(plain($0) == "" ? "\\&" : plain($0)); next }
/^    / && !item && (state == "" || state == "code") {
    if (state == "") print ".PP\n.RS 2\n.EX"
    state = "code"; put(plain(substr($0, 5))); next
}
state == "code" { print ".EE\n.RE"; state = "" }
/^<!--.*-->$/ { close_text(); next }
function close_text() { ended(); state = ""; columns = 0 }
/^$/ { close_text(); blank = 1; next }
{ after_blank = blank; blank = 0 }
/^```/ { close_text(); item = 0; print ".PP\n.RS 2\n.EX"; fence = 1; next }
/^## / { close_text(); item = 0; print ".SH " plain(toupper(substr($0, 4))); next }
/^### / { close_text(); item = 0; print ".SS " plain(substr($0, 5)); next }
/^#/ { die("no such heading") }
/^\*\*[^*]*\*\*$/ && state == "" { item = 0; print ".SS " plain(substr($0, 3, length($0) - 4)); next }
/^!\[[^]]*\]\([^()]*\)$/ { next }
/^[|]/ {
    if (!columns) { columns = cells($0); for (i = 1; i <= columns; i++) title[i] = cell[i]; item = 0; next }
    if ($0 !~ /^[|][-|: ]*$/) table_row($0)
    next
}
columns { die("a table ends with an empty line") }
/^- / { ended(); print ".IP \\(bu 2"; put(inline(substr($0, 3))); state = "text"; item = 1; next }
/^[0-9]+[.] / { ended(); print ".IP " $1 " 4"; sub(/^[0-9]+[.] /, ""); put(inline($0)); state = "text"; item = 1; next }
/^ / {
    if (!item) die("an indent that belongs to no list and is no code")
    sub(/^ +/, "")
    if ($0 ~ /^(- |[0-9]+[.] |```|[|])/) die("a list, code or table inside of a list")
    if (state == "") { print ".IP"; state = "text" }
    put(inline($0)); next
}
/^(>|\*|\+|===|---|<)/ { if ($0 !~ /^\*/) die("this sign at the beginning of a line means nothing here") }
{
    if (state == "") { print ".PP"; item = 0; state = "text" }
    put(inline($0))
}
END {
    if (failed) exit 1
    ended()
    if (fence) die("code that does not end")
    if (state == "code") print ".EE\n.RE"
}
