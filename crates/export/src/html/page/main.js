// Reads the data block and draws each part.

const data = JSON.parse(at("data").textContent);
for (const row of data.rows) {
  row.text = [row.syscall, row.api, row.function, row.file, row.line, row.module, row.program, row.cause].filter(Boolean).join(" ").toLowerCase();
}
verdict(data);
findings(data);
rounds(data);
requests(data);
flame(data);
timeline(data);
table(data);
windows(data);
prices(data);
