'use strict';
const zlib = require('zlib');

const table = new Uint32Array(256).map((_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n >>> 0; });
function slow(buf) {
  let c = 0xffffffff;
  for (const b of buf) c = table[(c ^ b) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
let impl;
try { impl = require('native-crc').crc32; } catch { impl = slow; }
function crc(buf) {
  return impl(buf);
}

let mix = 0;
for (let i = 0; i < 1200; i++) {
  const text = Buffer.from(Array.from({ length: 90 }, (_, k) => `${i}:${(k * i) % 977}`).join(';').repeat(6));
  const packed = zlib.deflateRawSync(text, { level: 9 });
  mix = (mix * 31 + crc(text) + crc(packed)) % 4294967291;
}
console.log(mix);
