{ print $1 * 2; fflush() }
