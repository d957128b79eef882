function emit(line) {
    print line
    fflush()
}
BEGIN {
    srand(7); seed = 12345
    for (i = 0; i < 400; i++) {
        s = 0
        for (k = 0; k < 400; k++) { seed = (seed * 1103 + 12345) % 65536; s += seed % 97; words[seed % 50]++ }
        emit("window " i ": " s)
    }
    for (w in words) n += words[w]
    print n
}
