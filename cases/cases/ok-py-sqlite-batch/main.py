"""Writes rows in one transaction and reads them back."""
import os
import sqlite3
import sys

if os.path.exists("data/db"):
    os.remove("data/db")
db = sqlite3.connect("data/db")
db.execute("create table t(k integer primary key, v)")
with db:
    db.executemany("insert into t values(?, ?)", ((i, i * i) for i in range(int(sys.argv[1]))))
print(db.execute("select sum(v) from t where k % 7 = 0").fetchone()[0])
