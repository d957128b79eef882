BEGIN {
    seed = 4711
    for (i = 0; i < 6000; i++) {
        seed = (seed * 1103 + 12345) % 65536
        c = seed % 600
        s = 0
        for (k = 0; k < 150; k++) s = (s * 31 + k * c) % 9973
        f = "parts/c" c
        print i, s >> f
        close(f)
        n[c]++
    }
    for (c in n) if (n[c] > most) most = n[c]
    print length(n), "customers,", most, "orders at most"
}
