// Draws the pictures of the demo's products: one SVG of plain shapes each, stored as WebP.
//
//   npm install --no-save sharp@0.34
//   node local/demo/pictures.mjs                   writes local/demo/pictures/*.webp
//   node local/demo/pictures.mjs --sheet FILE.png  also writes all pictures on one sheet
//
// The name of a picture is the name in `shop.json`. Another version of sharp may write other bytes
// for the same picture.

import { readdir, unlink, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import sharp from "sharp";

const folder = fileURLToPath(new URL("pictures/", import.meta.url));

const c = {
  cream: "#FFF7EA", sand: "#F1DCC0", peach: "#F7C4A0", coral: "#E77C60", red: "#CB4B41",
  mustard: "#E5AC42", yellow: "#F5CD62", sage: "#A8BE94", green: "#5F8F62", forest: "#34623F",
  teal: "#3E8C88", sky: "#B4D9E4", blue: "#4B80B4", navy: "#2C4263", lilac: "#C6B5DC",
  plum: "#79507E", brown: "#7A4A2B", bean: "#4E3023", wood: "#C88E59", pine: "#E2B880",
  dark: "#3B302C", grey: "#98A3A9", steel: "#C8D0D4", white: "#FFFFFF", terracotta: "#CF7A52",
};
const grounds = {
  coffee: "#F4E0CB", pantry: "#FAE6B6", kitchen: "#D9E9E6", clothes: "#E7E0F0", home: "#F7DBD1",
  plants: "#DFECD3", paper: "#DBE6F2", toys: "#FFEEC2",
};

// Shapes, in a square of 400 units. Things stand on y = 328.
const path = (d, fill, more = "") => `<path d="${d}" fill="${fill}" ${more}/>`;
const line = (d, stroke, width, more = "") =>
  `<path d="${d}" fill="none" stroke="${stroke}" stroke-width="${width}" stroke-linecap="round" stroke-linejoin="round" ${more}/>`;
const rect = (x, y, w, h, r, fill, more = "") =>
  `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="${r}" fill="${fill}" ${more}/>`;
const oval = (x, y, rx, ry, fill, more = "") => `<ellipse cx="${x}" cy="${y}" rx="${rx}" ry="${ry}" fill="${fill}" ${more}/>`;
const disc = (x, y, r, fill, more = "") => oval(x, y, r, r, fill, more);
const turn = (angle, x, y, ...parts) => `<g transform="rotate(${angle} ${x} ${y})">${parts.join("")}</g>`;
const move = (x, y, scale, ...parts) => `<g transform="translate(${x} ${y}) scale(${scale})">${parts.join("")}</g>`;
const mirror = (...parts) => `<g transform="translate(400 0) scale(-1 1)">${parts.join("")}</g>`;

let clips = 0;
/** A shape whose part right of `x` is in the shade, with further parts that its outline cuts. */
const solid = (shape, x = 215, inside = "", shade = 0.11) => {
  const id = `k${(clips += 1)}`;
  return `<clipPath id="${id}">${shape}</clipPath>${shape}<g clip-path="url(#${id})">${inside}${rect(x, 0, 400, 400, 0, "#000", `opacity="${shade}"`)}</g>`;
};
const shadow = (width = 110, x = 200, y = 328) => oval(x, y, width, 13, "#000", 'opacity=".11"');
const steam = (x = 190, y = 110) =>
  line(`M${x - 22} ${y} q-12 -16 0 -30 q12 -14 0 -30 M${x + 18} ${y} q-12 -16 0 -30 q12 -14 0 -30`, c.white, 8, 'opacity=".85"');
const glint = (x, y, h) => line(`M${x} ${y} v${h}`, c.white, 9, 'opacity=".45"');

// Signs for labels.
const bean = (x, y, s = 1, fill = c.bean, angle = 30) =>
  move(x, y, s, turn(angle, 0, 0, oval(0, 0, 17, 25, fill), line("M0 -23 q-9 12 0 23 q9 11 0 23", c.peach, 4)));
const leaf = (x, y, s = 1, fill = c.green, angle = 35) =>
  move(x, y, s, turn(angle, 0, 0, path("M0 32 C-28 12 -22 -22 0 -36 C22 -22 28 12 0 32 Z", fill), line("M0 40 V-20", c.cream, 3.5)));
const star = (x, y, s, fill) => move(x, y, s, path("M0 -20 L6 -6 L20 -6 L9 4 L13 19 L0 10 L-13 19 L-9 4 L-20 -6 L-6 -6 Z", fill));
const flower = (x, y, s, petals, heart) =>
  move(x, y, s, ...[...Array(12).keys()].map((i) => turn(i * 30, 0, 0, oval(0, -30, 9, 20, petals))), disc(0, 0, 20, heart));
const strawberry = (x, y, s = 1) =>
  move(x, y, s, path("M0 30 C-34 8 -28 -18 0 -16 C28 -18 34 8 0 30 Z", c.red),
    ...[[-12, -2], [0, 4], [12, -2], [-5, 14], [7, 15]].map(([a, b]) => oval(a, b, 2, 3, c.yellow)),
    path("M-18 -18 Q0 -8 18 -18 Q8 -22 0 -32 Q-8 -22 -18 -18 Z", c.green));
const bee = (x, y, s = 1) =>
  move(x, y, s, oval(-9, -16, 10, 15, c.sky, 'transform="rotate(-25 -9 -16)"'), oval(9, -16, 10, 15, c.sky, 'transform="rotate(25 9 -16)"'),
    oval(0, 2, 27, 17, c.mustard), rect(-12, -13, 7, 30, 2, c.dark), rect(3, -13, 7, 30, 2, c.dark), disc(21, -1, 2.5, c.dark));

// Things.
const bag = (fill, band, sign) => [
  shadow(100),
  solid(path("M128 112 Q200 120 272 112 L286 312 Q288 328 272 328 H128 Q112 328 114 312 Z", fill), 222),
  solid(path("M130 78 H270 L274 118 Q200 126 126 118 Z", fill), 222, rect(0, 0, 400, 400, 0, "#000", 'opacity=".14"')),
  rect(118, 96, 164, 11, 5, band), disc(200, 222, 54, c.cream), sign,
].join("");
const tin = (fill, sign) => [
  shadow(96), solid(rect(126, 136, 148, 192, 12, fill), 222, rect(100, 296, 200, 10, 0, c.cream, 'opacity=".55"')),
  solid(rect(118, 102, 164, 46, 10, fill), 222, rect(0, 0, 400, 400, 0, "#000", 'opacity=".16"')),
  rect(166, 88, 68, 18, 9, fill), disc(200, 222, 52, c.cream), sign,
].join("");
const jar = (fill, lid, sign) => [
  shadow(96), solid(rect(120, 134, 160, 194, 34, fill), 228), glint(141, 172, 110),
  solid(rect(130, 96, 140, 48, 10, lid), 228), rect(146, 200, 108, 92, 10, c.cream), sign,
].join("");
const mug = (fill, x = 0) => move(x, 0, 1, shadow(92, 190),
  line("M262 190 q58 -4 58 40 q0 46 -66 46", fill, 24), line("M262 190 q58 -4 58 40 q0 46 -66 46", "#000", 24, 'opacity=".11"'),
  solid(path("M112 150 H272 V282 Q272 328 226 328 H158 Q112 328 112 282 Z", fill), 214), oval(192, 150, 80, 17, fill), oval(192, 150, 80, 17, "#000", 'opacity=".16"'),
  oval(192, 153, 66, 11, c.bean), steam(192, 118));
const book = (fill, art) => [
  shadow(106), rect(122, 84, 168, 244, 8, c.cream), rect(122, 84, 168, 244, 8, "#000", 'opacity=".10"'),
  solid(rect(110, 76, 170, 246, 10, fill), 400, art), rect(110, 76, 24, 246, 8, "#000", 'opacity=".16"'),
].join("");
const pot = (fill = c.terracotta, top = 236) =>
  solid(path(`M140 ${top + 18} H260 L246 316 Q244 328 232 328 H168 Q156 328 154 316 Z`, fill), 214) + solid(rect(130, top - 6, 140, 32, 8, fill), 214);
const shirt = (fill, collar = c.cream, inside = "") => [
  shadow(92, 200, 336),
  solid(path("M152 88 Q200 118 248 88 L300 112 L338 184 L290 208 L280 190 V316 Q280 328 268 328 H132 Q120 328 120 316 V190 L110 208 L62 184 L100 112 Z", fill), 214, inside),
  line("M154 90 Q200 132 246 90", collar, 9),
].join("");
const sweater = (fill, yarn) => [
  shadow(104, 200, 336),
  solid(path("M150 86 Q200 104 250 86 L292 104 Q306 112 312 128 L352 290 L310 302 L284 214 V328 H116 V214 L90 302 L48 290 L88 128 Q94 112 108 104 Z", fill), 214,
    line("M70 190 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16 l16 -16 l16 16", yarn, 9)
    + line("M90 216 H310", yarn, 7, 'stroke-dasharray="2 15"') + line("M90 152 H310", yarn, 7, 'stroke-dasharray="2 15"')),
  rect(116, 306, 168, 22, 4, "#000", 'opacity=".13"'), line("M152 88 Q200 112 248 88", "#000", 13, 'opacity=".16"'),
].join("");
const jacket = (fill) => [
  shadow(104, 200, 336), path("M148 112 Q150 58 200 58 Q250 58 252 112 Z", fill), path("M148 112 Q150 58 200 58 Q250 58 252 112 Z", "#000", 'opacity=".18"'),
  solid(path("M142 104 Q200 128 258 104 L296 124 Q306 130 310 144 L344 282 L302 294 L282 220 V328 H118 V220 L98 294 L56 282 L90 144 Q94 130 104 124 Z", fill), 214),
  line("M200 118 V326", "#000", 5, 'opacity=".25"'), ...[148, 190, 232, 274].map((y) => disc(212, y, 7, c.cream)),
  rect(134, 250, 46, 40, 6, "#000", 'opacity=".13"'), rect(228, 250, 46, 40, 6, "#000", 'opacity=".13"'),
].join("");
const hat = (fill, yarn) => [
  shadow(112), disc(200, 92, 38, yarn), disc(213, 92, 25, "#000", 'opacity=".08"'),
  solid(path("M96 262 Q92 112 200 112 Q308 112 304 262 Z", fill), 214, line("M150 120 Q134 190 136 270 M200 112 V270 M250 120 Q266 190 264 270", "#000", 6, 'opacity=".12"')),
  solid(rect(84, 246, 232, 72, 20, yarn), 214, line("M114 254 v60 M146 254 v60 M178 254 v60 M210 254 v60 M242 254 v60 M274 254 v60", "#000", 6, 'opacity=".11"')),
].join("");
const sock = (fill, trim) => [
  solid(path("M150 78 H226 V212 Q226 232 242 242 L282 268 Q304 284 292 310 Q280 330 250 322 L176 290 Q150 278 150 246 Z", fill), 400,
    [118, 152, 186].map((y) => rect(140, y, 100, 12, 0, trim)).join("")),
  rect(144, 66, 88, 30, 10, trim), path("M292 310 Q280 330 250 322 L236 316 Q240 276 276 264 L282 268 Q304 284 292 310 Z", trim), path("M150 236 Q186 240 190 296 L176 290 Q150 278 150 246 Z", trim),
].join("");
const tomato = (x, y, s) => move(x, y, s, disc(0, 0, 30, c.red), disc(8, 2, 22, "#000", 'opacity=".07"'), path("M0 -30 L6 -18 L20 -20 L10 -10 L0 -16 L-10 -10 L-20 -20 L-6 -18 Z", c.green));
const monsteraLeaf = (x, y, s, angle, fill = c.green) =>
  move(x, y, s, turn(angle, 0, 0,
    solid(path("M0 60 C-70 40 -80 -30 -46 -64 C-30 -80 -10 -74 0 -60 C10 -74 30 -80 46 -64 C80 -30 70 40 0 60 Z", fill), 400,
      [-1, 1].map((side) => [-30, -2, 26].map((h) => path(`M${side * 80} ${h - 16} Q${side * 40} ${h} ${side * 22} ${h + 8} Q${side * 44} ${h + 10} ${side * 80} ${h + 2} Z`, "#EDF4E6")).join("")).join("")),
    line("M0 66 V-50", c.sage, 4)));
const wheel = (x, y, r) => disc(x, y, r, c.dark) + disc(x, y, r * 0.5, c.mustard);
const chessBody = (x, y, s, fill, top) => move(x, y, s, solid([path("M-34 0 Q-16 -34 -14 -76 H14 Q16 -34 34 0 Z", fill), top(fill), rect(-44, -6, 88, 26, 8, fill)].join(""), 8));

const pictures = {
  "espresso-beans": ["coffee", bag(c.bean, c.mustard, bean(186, 222, 1.1) + bean(216, 228, 0.9, c.brown, -25))],
  "espresso-beans-2": ["coffee", shadow(128) + oval(200, 224, 122, 30, c.forest) +
    [[160, 180, 10], [204, 168, 70], [244, 184, -20], [136, 206, 60], [180, 200, -40], [222, 202, 25], [266, 208, 80], [110, 222, 10], [292, 224, 30], [152, 224, 100], [200, 228, 50], [248, 228, -60]].map(([x, y, a], i) => bean(x, y, 1.2, i % 2 ? c.bean : c.brown, a)).join("") +
    solid(path("M76 222 Q200 262 324 222 Q322 328 238 328 H162 Q78 328 76 222 Z", c.teal), 220)],
  "filter-coffee": ["coffee", bag(c.coral, c.cream, bean(200, 222, 1.3, c.brown))],
  "sencha": ["coffee", tin(c.forest, leaf(190, 222, 0.95) + leaf(214, 232, 0.7, c.sage, 70))],
  "earl-grey": ["coffee", tin(c.navy, disc(200, 222, 30, c.mustard) + disc(200, 222, 23, c.yellow) + [0, 60, 120].map((a) => turn(a, 200, 222, line("M200 201 V243", c.cream, 4))).join(""))],
  "peppermint-tea": ["coffee", tin(c.teal, leaf(184, 220, 0.8, c.green, -35) + leaf(216, 220, 0.8, c.green, 35) + leaf(200, 206, 0.7, c.sage, 0))],
  "hot-chocolate": ["coffee", mug(c.red) + disc(168, 146, 13, c.cream) + disc(196, 142, 14, c.white) + disc(222, 148, 12, c.cream)],

  "blossom-honey": ["pantry", jar(c.mustard, c.brown, bee(200, 250))],
  "strawberry-jam": ["pantry", jar(c.red, c.cream, strawberry(200, 248))],
  "olive-oil": ["pantry", shadow(74) + rect(182, 62, 36, 34, 6, c.brown) + solid(path("M180 92 H220 V150 Q258 166 258 204 V312 Q258 328 242 328 H158 Q142 328 142 312 V204 Q142 166 180 150 Z", "#8C9A3C"), 214) + glint(160, 206, 84) + rect(160, 214, 80, 84, 8, c.cream) + oval(190, 260, 15, 20, c.green, 'transform="rotate(20 190 260)"') + leaf(216, 246, 0.55, c.forest, 50)],
  "sea-salt": ["pantry", shadow(112) + path("M110 232 Q150 148 200 152 Q252 150 290 232 Z", c.white) + [[150, 206], [190, 182], [220, 204], [250, 214], [176, 218]].map(([x, y]) => rect(x, y, 9, 9, 2, c.sky)).join("") + solid(path("M88 228 H312 Q308 328 236 328 H164 Q92 328 88 228 Z", c.blue), 218) + line("M250 206 L318 120", c.pine, 15)],
  "dark-chocolate": ["pantry", shadow(82, 200, 336) + turn(-8, 200, 200, solid(rect(136, 70, 128, 150, 8, c.bean), 400, [0, 1].map((i) => [0, 1, 2].map((j) => rect(144 + i * 60, 78 + j * 48, 52, 40, 5, c.brown)).join("")).join("")), path("M128 190 l14 -12 l14 12 l14 -12 l14 12 l14 -12 l14 12 l14 -12 l14 12 l14 -12 l16 12 V334 H128 Z", c.steel), solid(rect(128, 206, 144, 128, 6, c.plum), 220, rect(128, 236, 144, 62, 0, c.cream)), star(200, 267, 1.1, c.mustard))],
  "oat-biscuits": ["pantry", shadow(104) + [306, 268, 230, 192].map((y, i) => move(i % 2 ? 8 : -6, 0, 1, oval(200, y + 12, 96, 26, c.wood), oval(200, y, 96, 26, c.pine))).join("") + [[150, 188], [190, 178], [230, 194], [256, 186], [196, 202]].map(([x, y], i) => oval(x + 8, y, 9, 5, i % 2 ? c.wood : c.brown)).join("") + turn(-14, 244, 140, disc(250, 132, 52, c.pine), disc(250, 132, 52, "#000", 'opacity=".04"'), ...[[232, 112], [262, 116], [246, 138], [272, 146], [226, 150]].map(([x, y], i) => oval(x, y, 8, 6, i % 2 ? c.wood : c.brown)))],

  "french-press": ["kitchen", shadow(96, 194) + line("M194 50 V110", c.grey, 8) + disc(194, 48, 15, c.dark) + rect(128, 96, 132, 24, 10, c.steel) + solid(rect(134, 118, 120, 202, 10, "#EAF4F5"), 214, rect(134, 190, 120, 140, 0, c.brown) + rect(134, 176, 120, 14, 0, c.grey)) + line("M256 146 q58 0 58 52 v34 q0 42 -58 42", c.dark, 18) + rect(126, 142, 136, 13, 5, c.grey) + rect(126, 276, 136, 13, 5, c.grey) + line("M142 318 v10 M246 318 v10", c.grey, 12)],
  "coffee-dripper": ["kitchen", shadow(96) + path("M128 76 L272 76 L236 168 H164 Z", c.cream) + path("M140 98 L260 98 L236 160 H164 Z", c.brown) + solid(path("M114 106 H286 L236 198 H164 Z", c.white), 214) + rect(122, 194, 156, 15, 7, c.white) + rect(122, 194, 156, 15, 7, "#000", 'opacity=".09"') + solid(path("M138 214 H262 Q288 262 270 316 Q266 328 252 328 H148 Q134 328 130 316 Q112 262 138 214 Z", c.sky), 218, rect(100, 274, 200, 60, 0, c.brown)) + line("M200 214 v24", c.brown, 6)],
  "hand-grinder": ["kitchen", shadow(96) + line("M200 108 H286", c.grey, 11) + line("M286 106 v-26", c.grey, 9) + disc(286, 72, 16, c.red) + path("M146 156 Q150 104 200 104 Q250 104 254 156 Z", c.steel) + path("M204 104 Q250 104 254 156 H204 Z", "#000", 'opacity=".10"') + rect(122, 154, 156, 22, 6, c.brown) + solid(rect(132, 176, 136, 138, 4, c.wood), 214) + rect(116, 306, 168, 22, 6, c.brown) + rect(154, 224, 92, 60, 6, c.pine) + disc(200, 254, 9, c.brown)],
  "teapot": ["kitchen", shadow(112) + line("M296 212 q58 -22 50 34 q-6 40 -58 46", c.blue, 18) + path("M110 226 Q76 222 64 168 L92 160 Q100 204 130 208 Z", c.blue) + solid(path("M102 244 Q102 156 200 156 Q300 156 300 244 Q300 328 232 328 H168 Q102 328 102 244 Z", c.blue), 220, [140, 200, 260].map((x) => disc(x, 250, 15, c.cream)).join("")) + solid(path("M146 164 Q150 128 200 128 Q250 128 254 164 Z", c.blue), 214) + disc(200, 118, 15, c.mustard)],
  "teapot-2": ["kitchen", move(-22, 22, 0.82, shadow(112) + line("M296 212 q58 -22 50 34 q-6 40 -58 46", c.blue, 18) + path("M110 226 Q76 222 64 168 L92 160 Q100 204 130 208 Z", c.blue) + solid(path("M102 244 Q102 156 200 156 Q300 156 300 244 Q300 328 232 328 H168 Q102 328 102 244 Z", c.blue), 220, [140, 200, 260].map((x) => disc(x, 250, 15, c.cream)).join("")) + solid(path("M146 164 Q150 128 200 128 Q250 128 254 164 Z", c.blue), 214) + disc(200, 118, 15, c.mustard)) + move(182, 172, 0.52, shadow(110) + oval(196, 322, 124, 18, c.cream) + line("M276 210 q52 -6 50 28 q-2 34 -70 34", c.cream, 20) + solid(path("M100 180 H292 Q292 316 226 316 H166 Q100 316 100 180 Z", c.cream), 214) + oval(196, 180, 96, 20, c.cream) + oval(196, 183, 82, 14, c.green))],
  "kettle": ["kitchen", shadow(112) + line("M116 190 Q116 76 200 76 Q284 76 284 190", c.dark, 18) + path("M100 268 Q62 250 54 196 L82 190 Q92 226 118 232 Z", c.coral) + solid(path("M96 284 Q104 172 200 172 Q296 172 304 284 Q306 328 280 328 H120 Q94 328 96 284 Z", c.coral), 220) + rect(150, 160, 100, 20, 10, c.coral) + rect(150, 160, 100, 20, 10, "#000", 'opacity=".15"') + disc(200, 150, 14, c.dark) + glint(132, 236, 52)],
  "mug-blue": ["kitchen", mug(c.blue)], "mug-coral": ["kitchen", mug(c.coral)], "mug-sage": ["kitchen", mug(c.sage)], "mug-cream": ["kitchen", mug("#F6E8D0")],
  "cereal-bowl": ["kitchen", shadow(112) + oval(200, 206, 126, 24, c.cream) + [[130, 200], [160, 192], [196, 198], [232, 190], [262, 202], [178, 208], [222, 208]].map(([x, y], i) => disc(x, y, 15, i % 3 ? c.pine : c.red)).join("") + solid(path("M74 206 Q200 242 326 206 Q318 328 234 328 H166 Q82 328 74 206 Z", c.lilac), 220, path("M74 240 Q200 276 326 240 V256 Q200 292 74 256 Z", c.cream)) + line("M284 196 L340 108", c.grey, 12)],
  "dinner-plate": ["kitchen", disc(206, 212, 132, "#000", 'opacity=".10"') + disc(200, 202, 132, c.white) + disc(200, 202, 132, c.teal, 'opacity=".16"') + disc(200, 202, 116, c.cream) + disc(200, 202, 80, c.white) + [...Array(12).keys()].map((i) => turn(i * 30, 200, 202, leaf(200, 106, 0.42, c.teal, 90))).join("")],
  "water-carafe": ["kitchen", shadow(84) + solid(path("M168 74 H232 V136 Q276 176 274 240 Q274 328 240 328 H160 Q126 328 126 240 Q124 176 168 136 Z", "#EAF6F8"), 218, rect(100, 190, 200, 150, 0, c.sky)) + disc(182, 246, 27, c.yellow) + disc(182, 246, 20, c.cream) + [0, 60, 120].map((a) => turn(a, 182, 246, line("M182 228 V264", c.yellow, 4))).join("") + leaf(226, 272, 0.8) + rect(178, 56, 44, 30, 8, c.wood) + glint(146, 206, 70)],
  "cast-iron-pan": ["kitchen", disc(174, 232, 106, "#000", 'opacity=".10"') + turn(-45, 170, 226, rect(258, 208, 112, 36, 18, c.dark), disc(352, 226, 8, grounds.kitchen)) + disc(170, 226, 106, c.dark) + disc(170, 226, 88, "#564A45") + path("M126 214 Q118 172 160 178 Q196 158 214 192 Q252 200 234 234 Q236 270 196 262 Q162 288 142 258 Q108 250 126 214 Z", c.white) + disc(180, 222, 27, c.yellow) + disc(172, 214, 8, c.cream, 'opacity=".8"')],
  "chefs-knife": ["kitchen", turn(38, 200, 200, path("M188 34 Q246 100 240 216 H176 Z", "#000", 'opacity=".09" transform="translate(10 10)"'), path("M186 24 Q244 92 240 214 H176 Z", c.steel), path("M180 130 L178 214 H206 Q204 120 186 24 Z", c.white, 'opacity=".55"'), rect(172, 212, 68, 16, 4, c.grey), rect(178, 226, 52, 136, 20, c.brown), ...[258, 292, 326].map((y) => disc(204, y, 7, c.pine)))],
  "cutting-board": ["kitchen", shadow(112, 200, 336) + solid(rect(100, 96, 200, 234, 24, c.pine), 400, line("M130 96 Q120 210 134 330 M176 96 Q186 210 172 330 M232 96 Q222 200 238 330 M276 96 V330", c.wood, 4, 'opacity=".55"')) + rect(166, 52, 68, 62, 20, c.pine) + disc(200, 80, 12, grounds.kitchen) + tomato(160, 238, 1.1) + tomato(226, 268, 0.9) + leaf(232, 184, 0.9, c.green, 60)],
  "wooden-spoons": ["kitchen", shadow(84) + turn(-14, 190, 250, line("M172 240 V130", c.pine, 13), oval(172, 92, 26, 38, c.pine)) + turn(14, 210, 250, line("M228 240 V130", c.wood, 13), oval(228, 92, 25, 37, c.wood), oval(228, 94, 14, 24, "#000", 'opacity=".12"')) + line("M200 240 V120", c.wood, 13) + rect(176, 50, 48, 78, 18, c.wood) + rect(192, 64, 16, 44, 8, grounds.kitchen) + solid(path("M128 206 H272 L262 312 Q260 328 244 328 H156 Q140 328 138 312 Z", c.cream), 214, rect(100, 246, 200, 12, 0, c.teal) + rect(100, 268, 200, 6, 0, c.teal))],
  "tea-towel": ["kitchen", line("M76 84 H324", c.wood, 14) + solid(path("M116 78 H284 V314 Q284 322 276 322 H124 Q116 322 116 314 Z", c.cream), 210, [262, 282, 302].map((y) => rect(100, y, 200, 9, 0, c.red)).join("") + [140, 160].map((x) => rect(x, 60, 6, 280, 0, c.red, 'opacity=".5"')).join(""), 0.07)],
  "apron": ["kitchen", line("M158 112 Q160 44 200 44 Q240 44 242 112", c.sand, 11) + line("M112 208 Q66 218 56 262 M288 208 Q334 218 344 262", c.sand, 11) + solid(path("M150 100 H250 Q252 176 292 196 V306 Q292 324 274 324 H126 Q108 324 108 306 V196 Q148 176 150 100 Z", c.forest), 214) + rect(152, 222, 96, 66, 10, c.green) + line("M152 240 H248", c.sand, 5)],

  "t-shirt-white": ["clothes", shirt(c.white, c.steel)], "t-shirt-navy": ["clothes", shirt(c.navy, c.blue)],
  "wool-sweater": ["clothes", sweater(c.coral, c.cream)],
  "rain-jacket": ["clothes", jacket(c.yellow)],
  "wool-socks": ["clothes", shadow(110, 210, 332) + move(44, -14, 1, sock(c.coral, c.navy)) + move(-34, 6, 1, sock(c.mustard, c.teal))],
  "knitted-hat-red": ["clothes", hat(c.red, c.cream)], "knitted-hat-blue": ["clothes", hat(c.blue, c.sky)],
  "wool-scarf": ["clothes", shadow(96, 204, 336) + turn(10, 160, 160, solid(rect(132, 150, 66, 136, 0, c.plum), 400, [176, 212, 248].map((y) => rect(120, y, 90, 13, 0, c.peach)).join("")), line("M140 290 v16 M154 290 v16 M168 290 v16 M182 290 v16 M192 290 v16", c.plum, 6)) + solid(rect(204, 150, 70, 158, 0, c.plum), 400, [186, 222, 258, 288].map((y) => rect(200, y, 80, 13, 0, c.peach)).join("")) + line("M212 312 v16 M226 312 v16 M240 312 v16 M254 312 v16 M267 312 v16", c.plum, 6) + `<ellipse cx="200" cy="126" rx="78" ry="48" fill="none" stroke="${c.plum}" stroke-width="50"/>` + line("M124 122 Q134 88 190 80", c.peach, 9) + line("M136 156 Q200 190 264 156", c.peach, 9) + line("M150 178 Q200 196 250 178", "#000", 6, 'opacity=".12"')],
  "canvas-tote": ["clothes", shadow(104) + line("M152 142 Q152 60 200 60 Q248 60 248 142", c.wood, 15) + solid(path("M106 136 H294 L304 312 Q304 328 288 328 H112 Q96 328 96 312 Z", c.cream), 216, "", 0.07) + leaf(182, 236, 1.25, c.green, -20) + leaf(226, 244, 1, c.sage, 40)],
  "umbrella": ["clothes", shadow(40, 214, 340) + line("M200 180 V304 q0 28 24 28 q22 0 22 -22", c.brown, 12) + line("M200 62 V84", c.brown, 9) + solid(path("M66 206 Q76 76 200 76 Q324 76 334 206 Q310 184 290 206 Q268 184 245 206 Q222 184 200 206 Q178 184 155 206 Q132 184 110 206 Q90 184 66 206 Z", c.red), 400, path("M155 206 Q150 110 200 76 Q250 110 245 206 Q222 184 200 206 Q178 184 155 206 Z", c.coral) + path("M290 206 Q292 110 200 76 Q334 76 334 206 Z", "#000", 'opacity=".10"'))],

  "scented-candle": ["home", shadow(84) + path("M200 62 Q236 108 214 132 Q200 144 186 132 Q164 108 200 62 Z", c.mustard) + path("M200 92 Q216 116 208 130 Q200 138 192 130 Q184 116 200 92 Z", c.cream) + line("M200 134 V168", c.dark, 6) + solid(rect(130, 160, 140, 168, 18, c.sage), 218) + oval(200, 166, 68, 12, c.cream) + line("M200 138 V166", c.dark, 6) + rect(152, 216, 96, 76, 8, c.cream) + flower(200, 254, 0.55, c.lilac, c.mustard)],
  "table-lamp": ["home", disc(200, 160, 128, c.yellow, 'opacity=".35"') + shadow(74) + rect(191, 180, 18, 96, 4, c.wood) + solid(path("M150 300 Q152 262 200 262 Q248 262 250 300 V328 H150 Z", c.teal), 214) + solid(path("M150 72 H250 L296 194 H104 Z", c.cream), 218, rect(80, 176, 240, 20, 0, c.coral)) + line("M246 196 v38", c.grey, 4) + disc(246, 240, 7, c.mustard)],
  "wall-clock": ["home", disc(206, 208, 128, "#000", 'opacity=".10"') + disc(200, 200, 128, c.teal) + disc(200, 200, 106, c.cream) + [...Array(12).keys()].map((i) => turn(i * 30, 200, 200, line("M200 112 v" + (i % 3 ? 9 : 20), c.navy, i % 3 ? 5 : 8))).join("") + line("M200 200 L156 164", c.navy, 11) + line("M200 200 L250 138", c.navy, 8) + line("M200 200 L212 268", c.red, 4) + disc(200, 200, 11, c.red)],
  "wool-blanket": ["home", shadow(122) + [[270, c.coral], [216, c.cream], [162, c.mustard]].map(([y, fill], i) => solid(rect(82 + i * 4, y, 236 - i * 8, 58, 24, fill), 230, [104, 128, 272, 296].map((x) => rect(x, y, 9, 60, 0, "#000", 'opacity=".10"')).join(""))).join("") + [...Array(9).keys()].map((i) => line(`M${108 + i * 23} 162 v-15`, c.mustard, 6)).join("")],
  "storage-basket": ["home", shadow(112) + line("M116 178 Q84 134 128 128 M284 178 Q316 134 272 128", c.wood, 13) + path("M120 176 Q140 112 200 118 Q262 110 282 176 Z", c.sky) + path("M150 176 Q170 132 216 140 Q252 136 262 176 Z", c.coral) + solid(path("M96 172 H304 L288 312 Q286 328 270 328 H130 Q114 328 112 312 Z", c.pine), 220, [0, 1, 2, 3].map((j) => [...Array(9).keys()].map((i) => rect(88 + i * 28 + (j % 2) * 14, 196 + j * 34, 17, 20, 6, c.wood, 'opacity=".75"')).join("")).join("")) + rect(90, 164, 220, 22, 11, c.wood)],
  "olive-soap": ["home", shadow(116) + solid(rect(88, 250, 224, 78, 22, c.sage), 230) + solid(rect(108, 178, 184, 80, 22, "#C9D39A"), 230) + rect(108, 206, 184, 26, 0, c.cream) + leaf(200, 219, 0.45, c.forest, 90) + disc(256, 128, 26, c.white, 'opacity=".75"') + disc(212, 98, 17, c.white, 'opacity=".75"') + disc(288, 90, 13, c.white, 'opacity=".75"') + disc(166, 138, 12, c.white, 'opacity=".75"')],
  "bath-towel": ["home", shadow(116) + [[280, c.sky], [228, c.blue], [176, c.cream]].map(([y, fill], i) => solid(rect(86 + (i % 2) * 6, y, 228 - (i % 2) * 12, 50, 22, fill), 400, rect(258, y, 14, 60, 0, "#000", 'opacity=".10"') + rect(280, y, 6, 60, 0, "#000", 'opacity=".10"'))).join("") + disc(200, 140, 38, c.coral) + line("M200 140 q0 -14 14 -12 q14 6 8 22 q-10 18 -30 10 q-18 -12 -8 -34", c.cream, 6)],
  "dish-brush": ["home", shadow(84, 200, 336) + turn(-32, 200, 200, rect(188, 34, 24, 186, 12, c.pine), disc(200, 54, 6, grounds.home), rect(184, 206, 32, 22, 6, c.grey), solid(path("M158 226 H242 Q250 226 250 240 V258 H150 V240 Q150 226 158 226 Z", c.wood), 210), ...[...Array(9).keys()].map((i) => line(`M${156 + i * 11} 264 V306`, i % 2 ? c.sand : c.cream, 9)))],

  "monstera": ["plants", shadow(84) + line("M200 250 Q190 190 140 150 M200 250 Q206 180 204 120 M200 250 Q216 200 262 168", c.forest, 8) + monsteraLeaf(130, 146, 0.86, -48) + monsteraLeaf(272, 160, 0.82, 52, c.green) + monsteraLeaf(204, 108, 1, 4, c.forest) + pot(c.cream)],
  "monstera-2": ["plants", line("M210 380 Q204 320 200 270", c.forest, 12) + monsteraLeaf(200, 190, 1.95, -6)],
  "snake-plant": ["plants", shadow(84) + [["M176 250 Q128 170 140 92 Q178 160 196 250 Z", c.green], ["M224 250 Q276 180 262 100 Q228 164 206 250 Z", c.green], ["M184 250 Q178 140 202 54 Q226 140 218 250 Z", c.forest]].map(([d, fill]) => solid(path(d, fill), 400, line("M120 130 q20 12 40 0 M140 180 q20 12 46 0 M180 120 q20 12 44 0 M176 170 q24 12 50 0 M178 216 q24 12 48 0 M226 150 q20 12 48 0 M216 204 q20 12 44 0", c.sage, 7)) + line(d, c.yellow, 4)).join("") + pot(c.blue)],
  "cactus": ["plants", shadow(84) + line("M200 240 V124", c.green, 76) + line("M152 196 H126 V152", c.green, 36) + line("M248 178 H280 V126", c.green, 36) + line("M178 106 V236 M200 96 V236 M222 106 V236", c.sage, 5) + flower(200, 80, 0.5, c.coral, c.yellow) + flower(280, 106, 0.32, c.coral, c.yellow) + pot()],
  "basil": ["plants", shadow(84) + line("M200 246 V150 M200 246 Q170 200 146 176 M200 246 Q230 200 256 176", c.forest, 7) + [[146, 168, -45], [118, 196, -80], [168, 132, -20], [200, 108, 0], [232, 132, 20], [254, 168, 45], [282, 196, 80], [178, 190, -30], [222, 190, 30], [200, 162, 5]].map(([x, y, a], i) => leaf(x, y, 1.1, i % 2 ? c.green : "#79A86B", a)).join("") + pot(c.terracotta)],
  "terracotta-pot": ["plants", shadow(104) + solid(path("M116 172 H284 L262 310 Q258 328 242 328 H158 Q142 328 138 310 Z", c.terracotta), 218) + solid(rect(100, 128, 200, 54, 12, c.terracotta), 218) + oval(200, 132, 92, 12, "#000", 'opacity=".18"') + line("M140 236 q15 -18 30 0 q15 18 30 0 q15 -18 30 0 q15 18 30 0", c.cream, 8, 'opacity=".8"')],
  "watering-can": ["plants", shadow(110, 206) + line("M226 166 Q238 84 308 112 Q344 132 310 250", c.forest, 17) + path("M150 284 L66 164 L86 150 L168 220 Z", c.green) + turn(-40, 70, 156, rect(40, 144, 62, 24, 8, c.forest)) + solid(path("M142 178 H284 L296 308 Q298 328 278 328 H148 Q128 328 130 308 Z", c.green), 226) + oval(213, 178, 71, 14, c.forest) + line("M52 190 v14 M34 204 v14 M64 212 v14", c.blue, 7)],
  "sunflower-seeds": ["plants", shadow(88, 200, 336) + turn(-4, 200, 200, solid(rect(118, 70, 164, 258, 8, c.sky), 400, rect(118, 252, 164, 80, 0, c.green)), rect(118, 70, 164, 34, 6, c.cream), line("M200 214 V300", c.forest, 9), leaf(180, 262, 0.7, c.forest, -55), leaf(222, 270, 0.7, c.forest, 55), flower(200, 178, 1.15, c.mustard, c.brown))],

  "book-bread": ["paper", book(c.terracotta, path("M146 214 Q146 158 200 158 Q254 158 254 214 Q254 240 240 240 H160 Q146 240 146 214 Z", c.pine) + line("M176 172 l14 26 M204 168 l14 26", c.wood, 8) + rect(152, 102, 92, 14, 7, c.cream) + rect(172, 124, 52, 9, 4, c.cream) + rect(168, 282, 60, 9, 4, c.cream))],
  "book-birds": ["paper", book(c.sky, line("M134 262 H290", c.brown, 9) + path("M160 226 Q160 178 208 178 Q238 178 244 204 L268 200 L250 220 Q246 256 204 256 Q164 256 160 226 Z", c.coral) + path("M172 226 Q150 232 138 256 Q176 262 190 244 Z", c.red) + path("M186 210 Q214 204 226 228 Q206 246 184 232 Z", c.red) + disc(230, 202, 5, c.dark) + line("M200 256 v8 M214 255 v8", c.dark, 4) + rect(152, 102, 92, 14, 7, c.navy) + rect(172, 124, 52, 9, 4, c.navy) + leaf(250, 286, 0.6, c.green, 120))],
  "book-walks": ["paper", book(c.sage, path("M110 262 L164 178 L204 236 L236 196 L290 268 V330 H110 Z", c.forest) + path("M110 290 Q190 250 290 300 V330 H110 Z", c.green) + line("M150 322 Q210 300 190 276 Q180 262 206 250", c.cream, 9) + disc(246, 160, 19, c.yellow) + rect(152, 100, 92, 14, 7, c.cream) + rect(172, 122, 52, 9, 4, c.cream))],
  "notebook": ["paper", shadow(104) + rect(122, 82, 168, 246, 12, c.cream) + rect(122, 82, 168, 246, 12, "#000", 'opacity=".10"') + solid(rect(112, 76, 168, 248, 14, c.plum), 400, rect(112, 76, 26, 250, 0, "#000", 'opacity=".14"')) + rect(244, 76, 11, 248, 0, c.mustard) + rect(156, 122, 70, 44, 8, c.cream) + turn(18, 312, 220, rect(300, 120, 19, 178, 3, c.mustard), path("M300 298 H319 L309.500 330 Z", c.pine), path("M306 318 H313 L309.500 330 Z", c.dark), rect(300, 106, 19, 20, 6, c.coral))],
  "notebook-2": ["paper", shadow(140, 200, 312) + path("M52 110 Q130 86 200 116 V306 Q130 278 52 300 Z", c.white) + path("M348 110 Q270 86 200 116 V306 Q270 278 348 300 Z", c.cream) + line("M78 148 Q130 134 176 152 M78 180 Q130 166 176 184 M78 212 Q130 198 176 216 M78 244 Q130 230 176 248", c.sky, 5) + line("M226 158 Q236 148 250 160 T276 156 T304 150 M226 190 Q240 182 254 192 T300 182", c.navy, 5) + line("M200 116 V306", c.steel, 5) + turn(50, 300, 236, rect(292, 150, 17, 140, 3, c.mustard), path("M292 290 H309 L300.500 318 Z", c.pine))],
  "pencils": ["paper", shadow(84) + [[-14, c.red, 160], [-5, c.mustard, 184], [4, c.green, 206], [12, c.blue, 228], [20, c.plum, 246]].map(([a, fill, x], i) => turn(a, x, 240, rect(x - 11, 98 - (i % 2) * 18, 22, 170, 2, fill), path(`M${x - 11} ${98 - (i % 2) * 18} h22 l-11 -34 Z`, c.pine), path(`M${x - 4} ${76 - (i % 2) * 18} h8 l-4 -12 Z`, fill))).join("") + solid(path("M132 206 H268 L260 314 Q258 328 244 328 H156 Q142 328 140 314 Z", c.cream), 214, [...Array(7).keys()].map((i) => rect(140 + i * 22, 190, 9, 150, 0, c.sky)).join(""))],

  "jigsaw-puzzle": ["toys", [[84, 96, c.coral], [200, 96, c.teal], [84, 212, c.mustard]].map(([x, y, fill]) => rect(x + 6, y + 8, 112, 112, 10, "#000", 'opacity=".08"') + rect(x, y, 112, 112, 10, fill)).join("") + disc(198, 152, 21, c.coral) + disc(140, 212, 21, c.coral) + disc(256, 212, 21, grounds.toys) + disc(200, 268, 21, grounds.toys) + turn(14, 270, 282, rect(222, 236, 112, 112, 10, "#000", 'opacity=".08"'), rect(216, 228, 112, 112, 10, c.blue), disc(272, 226, 21, c.blue), disc(214, 284, 21, c.blue))],
  "chess-set": ["toys", shadow(128) + solid(rect(64, 286, 272, 42, 8, c.wood), 400, [...Array(4).keys()].map((i) => rect(64 + i * 68, 286, 34, 20, 0, c.brown)).join("")) + chessBody(140, 272, 1.35, c.peach, (f) => disc(0, -92, 25, f) + rect(-24, -74, 48, 13, 6, f)) + chessBody(252, 272, 1.5, c.dark, (f) => path("M-24 -74 L-32 -114 L-12 -98 L0 -122 L12 -98 L32 -114 L24 -74 Z", f) + disc(0, -128, 8, f) + rect(-28, -78, 56, 13, 6, f))],
  "wooden-train": ["toys", shadow(150) + line("M56 328 H344", c.wood, 8) + line("M196 278 H222", c.dark, 9) + solid(rect(212, 206, 124, 84, 8, c.blue), 400, rect(212, 262, 124, 30, 0, "#000", 'opacity=".12"')) + [[234, c.red], [272, c.yellow], [308, c.green]].map(([x, fill]) => disc(x, 200, 20, fill)).join("") + rect(206, 204, 136, 16, 6, c.pine) + rect(140, 150, 62, 140, 6, c.red) + rect(130, 138, 82, 18, 8, c.forest) + rect(154, 172, 34, 38, 6, c.sky) + solid(rect(62, 212, 84, 78, 22, c.green), 400, rect(62, 264, 90, 30, 0, "#000", 'opacity=".12"')) + rect(84, 160, 28, 56, 4, c.mustard) + rect(76, 152, 44, 16, 6, c.mustard) + disc(92, 122, 15, c.white, 'opacity=".9"') + disc(116, 98, 20, c.white, 'opacity=".9"') + wheel(94, 298, 27) + wheel(164, 298, 27) + wheel(242, 302, 23) + wheel(308, 302, 23)],
  "teddy-bear": ["toys", shadow(96) + disc(138, 98, 30, c.wood) + disc(262, 98, 30, c.wood) + disc(138, 98, 16, c.pine) + disc(262, 98, 16, c.pine) + oval(116, 236, 27, 46, c.wood, 'transform="rotate(28 116 236)"') + oval(284, 236, 27, 46, c.wood, 'transform="rotate(-28 284 236)"') + oval(200, 254, 80, 74, c.wood) + oval(200, 262, 52, 52, c.pine) + oval(140, 304, 38, 30, c.wood) + oval(260, 304, 38, 30, c.wood) + oval(136, 308, 20, 17, c.pine) + oval(264, 308, 20, 17, c.pine) + oval(200, 142, 84, 74, c.wood) + oval(200, 168, 38, 30, c.pine) + oval(200, 154, 14, 10, c.dark) + line("M200 164 v12 q-14 12 -22 2 M200 176 q14 12 22 2", c.dark, 5) + disc(164, 132, 9, c.dark) + disc(236, 132, 9, c.dark) + path("M200 214 L156 196 V236 Z M200 214 L244 196 V236 Z", c.red) + disc(200, 215, 11, c.red)],
  "kite": ["toys", oval(96, 118, 46, 18, c.white, 'opacity=".8"') + oval(124, 104, 30, 20, c.white, 'opacity=".8"') + oval(318, 266, 40, 16, c.white, 'opacity=".8"') + turn(24, 210, 160, path("M210 52 L290 150 H210 Z", c.coral), path("M210 52 L130 150 H210 Z", c.yellow), path("M130 150 H210 V276 Z", c.teal), path("M290 150 H210 V276 Z", c.blue), line("M210 52 V276 M130 150 H290", c.brown, 4)) + line("M164 262 Q132 290 156 314 T132 356", c.brown, 4) + turn(20, 150, 296, path("M150 300 l-20 -12 v24 Z M150 300 l20 -12 v24 Z", c.red)) + turn(-20, 150, 330, path("M150 330 l-20 -12 v24 Z M150 330 l20 -12 v24 Z", c.mustard))],
  "building-blocks": ["toys", shadow(124) + solid(rect(82, 246, 82, 82, 8, c.red), 400) + solid(rect(168, 246, 82, 82, 8, c.blue), 400) + solid(rect(254, 246, 82, 82, 8, c.green), 400) + solid(rect(124, 162, 82, 82, 8, c.mustard), 400) + path("M212 244 Q212 162 296 162 V244 Z", c.teal) + path("M162 84 L206 160 H118 Z", c.coral) + disc(123, 287, 20, c.cream) + star(209, 288, 1.15, c.cream) + path("M274 306 L295 266 L316 306 Z", c.cream) + rect(147, 185, 36, 36, 6, c.cream)],
};

const svg = ([ground, drawing]) => {
  const fill = grounds[ground];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="800" height="800" viewBox="0 0 400 400">${rect(0, 0, 400, 400, 0, fill)}${disc(200, 200, 168, c.white, 'opacity=".38"')}${drawing}</svg>`;
};

for (const name of await readdir(folder)) await unlink(folder + name);
let total = 0;
const tiles = [];
for (const [name, picture] of Object.entries(pictures)) {
  const drawn = Buffer.from(svg(picture));
  const webp = await sharp(drawn).webp({ quality: 62, effort: 6, smartSubsample: true }).toBuffer();
  total += webp.length;
  await writeFile(`${folder}${name}.webp`, webp);
  tiles.push({ input: await sharp(webp).resize(200).png().toBuffer(), name, bytes: webp.length });
}
const largest = tiles.reduce((a, b) => (a.bytes > b.bytes ? a : b));
console.log(`${tiles.length} pictures, ${total} bytes, largest: ${largest.name} with ${largest.bytes}`);
const sheet = process.argv.indexOf("--sheet");
if (sheet > 0) {
  const columns = 9;
  const blank = { width: columns * 200, height: Math.ceil(tiles.length / columns) * 200, channels: 3, background: "white" };
  const placed = tiles.map(({ input }, i) => ({ input, left: (i % columns) * 200, top: Math.floor(i / columns) * 200 }));
  await sharp({ create: blank }).composite(placed).png().toFile(process.argv[sheet + 1]);
}
