// Imports records and keeps an eye on the heap, so that a large file cannot kill the process.
const crypto = require('crypto');

const LIMIT = 1 << 30;

class Importer {
  constructor() {
    this.byCountry = new Map();
    this.pauses = 0;
    this.count = 0;
    this.hash = crypto.createHash('sha1');
  }

  heapIsFull() {
    return this.count % 1000 === 0 && process.memoryUsage().heapUsed > LIMIT;
  }

  parse(line) {
    const [id, country, name, note] = line.split(';');
    const words = note.split(/\s+/).map((w) => w.normalize('NFKD').toLowerCase()).sort();
    return { id: Number(id), country, name: name.trim(), words };
  }

  async add(line) {
    if (this.heapIsFull()) {
      this.pauses++;
      await new Promise((r) => setTimeout(r, 100));
    }
    const rec = this.parse(line);
    this.count++;
    this.byCountry.set(rec.country, (this.byCountry.get(rec.country) || 0) + rec.words.length);
    this.hash.update(rec.words.join(' '));
  }
}

function* lines(n) {
  const countries = ['DE', 'FR', 'IT', 'PL', 'SE'];
  for (let i = 0; i < n; i++) {
    const words = [];
    for (let w = 0; w < 140; w++) words.push('Wört' + ((i * 31 + w * 17) % 997).toString(36));
    yield `${i};${countries[i % 5]}; name ${i} ;${words.join(' ')}`;
  }
}

async function main() {
  const imp = new Importer();
  for (const line of lines(5000)) await imp.add(line);
  for (const [country, n] of imp.byCountry) console.log(country, n);
  console.log(imp.count, 'records', imp.hash.digest('hex'));
}

main();
