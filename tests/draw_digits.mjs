// Draws on the page of examples/serving with the mouse, in a real browser: node draw_digits.mjs URL CHROMIUM FOLDER.
// Standard input: {strokes: {"3": [[[x, y], ...], ...]}, inputs: [{shape, data}]} as JSON; printed: what the page
// answered to each drawing, and the logits of each input. A picture of the page for each drawing lies in FOLDER.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";

const [url, executablePath, folder] = process.argv.slice(2);
const { strokes, inputs } = JSON.parse(readFileSync(0));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 720, height: 620 } });
const found = { errors: [], answers: {}, times: {}, logits: [] };
page.on("pageerror", error => found.errors.push(String(error)));
await page.goto(url);
await page.waitForFunction(() => window.model || document.getElementById("state").textContent.startsWith("failed"));
found.state = await page.textContent("#state");
for (const [digit, lines] of Object.entries(strokes)) {
  await page.click("#clear");
  const paper = await page.locator("#paper").boundingBox();
  for (const [start, ...rest] of lines) {
    await page.mouse.move(paper.x + start[0], paper.y + start[1]);
    await page.mouse.down();
    for (const [x, y] of rest) await page.mouse.move(paper.x + x, paper.y + y, { steps: 4 });
    await page.mouse.up();
  }
  await page.waitForFunction(() => document.getElementById("answer").textContent);
  await page.waitForTimeout(100);  // an answer comes after each line; the last one is meant
  found.answers[digit] = await page.textContent("#answer");
  found.times[digit] = await page.textContent("#state");
  await page.screenshot({ path: `${folder}/digit-${digit}.png` });
}
for (const { shape, data } of inputs)
  found.logits.push(await page.evaluate(async ({ shape, data }) => {
    const image = new ort.Tensor("float32", Float32Array.from(data), shape);
    return Array.from((await model.session.run({ image })).logits.data);
  }, { shape, data }));
console.log(JSON.stringify(found));
await browser.close();
