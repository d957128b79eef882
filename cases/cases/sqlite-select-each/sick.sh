# Looks rows up in one transaction each.
{ for i in $(seq "$1"); do echo "SELECT v FROM t WHERE k = $i;"; done; } | sqlite3 data/db
