{ n[strftime("%H", $1 * 3600)]++ }
END { for (h in n) s += n[h]; print s }
