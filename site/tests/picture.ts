// Draws a PNG picture: two colours and a circle.
import { crc32, deflateSync } from "node:zlib";

const SIZE = 480;

type Colour = readonly [number, number, number];

export function picture(from: Colour, to: Colour): Buffer {
  const rows = Array.from({ length: SIZE }, (_, y) => row(y, from, to));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(SIZE, 0);
  header.writeUInt32BE(SIZE, 4);
  header.set([8, 2], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const parts = [chunk("IHDR", header), chunk("IDAT", deflateSync(Buffer.concat(rows))), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...parts]);
}

function row(y: number, from: Colour, to: Colour): Buffer {
  const pixels = Array.from({ length: SIZE }, (_, x) => {
    const inside = Math.hypot(x - SIZE / 2, y - SIZE * 0.55) < SIZE * 0.3;
    const share = inside ? 1 - (y / SIZE) * 0.4 : (y / SIZE) * 0.35;
    return from.map((value, i) => Math.round(value + (to[i]! - value) * share));
  });
  return Buffer.from([0, ...pixels.flat()]);
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
