# Looks rows up in one transaction.
{ echo "BEGIN;"; for i in $(seq "$1"); do echo "SELECT v FROM t WHERE k = $i;"; done; echo "COMMIT;"; } | sqlite3 data/db
