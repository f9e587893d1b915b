// What tests ask a page. Each function returns sentences about what is wrong.

// texts are the pieces of text that can be seen, with the element that they are in.
function texts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 1 && box.height > 1) found.push({text: node.data.trim().slice(0, 40), node, element, box});
    }
  }
  return found;
}

// clipped is the part of a box that can be seen, for what is in something that
// scrolls or cuts text.
function clipped(element, box) {
  let {left, right, top, bottom} = box;
  for (let at = element; at && at !== document.body; at = at.parentElement) {
    if (getComputedStyle(at).overflowX === 'visible') continue;
    const frame = at.getBoundingClientRect();
    left = Math.max(left, frame.left); right = Math.min(right, frame.right);
    top = Math.max(top, frame.top); bottom = Math.min(bottom, frame.bottom);
  }
  return {left, right, top, bottom};
}

function sideways() {
  const width = document.documentElement.clientWidth, wrong = [];
  if (document.documentElement.scrollWidth > width) wrong.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
  for (const {text, element, box} of texts()) {
    const seen = clipped(element, box);
    if (element.closest('.skip') || seen.right <= seen.left) continue;
    if (seen.left < -1 || seen.right > width + 1) wrong.push(`"${text}" is beyond the edge`);
  }
  return wrong;
}

// overlaps are pieces of text that stand on each other.
function overlaps() {
  const wrong = [], all = [];
  for (const {text, node, element, box} of texts()) {
    if (element.closest('.skip')) continue;
    const seen = clipped(element, box), third = (seen.bottom - seen.top) / 3;
    // The room above and below letters may be shared.
    if (seen.right > seen.left && third > 0) all.push({text, node, left: seen.left + 1, right: seen.right - 1, top: seen.top + third, bottom: seen.bottom - third});
  }
  all.sort((a, b) => a.top - b.top);
  for (let i = 0; i < all.length; i++) {
    for (let j = i + 1; j < all.length && all[j].top < all[i].bottom; j++) {
      const apart = all[i].left >= all[j].right || all[j].left >= all[i].right;
      // Text that is cut has boxes for all of it, and one for the dots.
      if (!apart && all[i].node !== all[j].node) wrong.push(`"${all[i].text}" and "${all[j].text}" overlap`);
    }
  }
  return wrong;
}

// strays are lines of drawings that do not meet the rows that they are for, and the
// first of them says when there are no lines at all.
function strays() {
  const wrong = [];
  for (const map of document.querySelectorAll('.map')) {
    const rows = [...map.querySelectorAll('.side')].map(side => [...side.querySelectorAll('li')]);
    const lines = [...map.querySelectorAll('path.line')];
    if (!lines.length) wrong.push('a drawing has no lines');
    for (const line of lines) {
      const matrix = line.getScreenCTM(), length = line.getTotalLength();
      const ends = [line.getPointAtLength(0), line.getPointAtLength(length)].map(point => point.matrixTransform(matrix));
      [line.dataset.from, line.dataset.to].forEach((row, side) => {
        if (row === '-1') return;
        const box = rows[side][row].getBoundingClientRect();
        const x = side === 0 ? box.right : box.left, y = (box.top + box.bottom) / 2;
        if (Math.abs(ends[side].x - x) > 1.5 || Math.abs(ends[side].y - y) > 1.5) {
          wrong.push(`a line of "${rows[side][row].textContent}" is at ${ends[side].x},${ends[side].y} and not at ${x},${y}`);
        }
      });
    }
  }
  return wrong;
}

function parse(color) {
  const parts = color.match(/[\d.]+/g).map(Number);
  return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
}

function luminance(rgb) {
  const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const {rgb, alpha} = parse(getComputedStyle(at).backgroundColor);
    if (alpha === 1) return rgb;
  }
  return [255, 255, 255];
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

// pale is text that is hard to read, and lines that are hard to see: WCAG 2.2,
// 1.4.3 and 1.4.11.
function pale() {
  const wrong = new Set();
  for (const {text, element} of texts()) {
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const least = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
    const ratio = contrast(parse(style.color).rgb, ground(element));
    if (ratio < least) wrong.add(`"${text}" has ${style.color} on ${ground(element)}: ${ratio.toFixed(2)}, less than ${least}`);
  }
  for (const line of document.querySelectorAll('.line, .arrow line')) {
    const stroke = getComputedStyle(line).stroke, ratio = contrast(parse(stroke).rgb, ground(line.closest('div, li, th, td')));
    if (ratio < 3) wrong.add(`a line ${line.getAttribute('class')} has ${stroke}: ${ratio.toFixed(2)}, less than 3`);
  }
  return [...wrong];
}

// brightness of the page, from 0 to 1.
function brightness() { return luminance(ground(document.body)); }

// broken are links to places that the page does not have, and names of places that
// it has twice.
function broken() {
  const wrong = [], ids = [...document.querySelectorAll('[id]')].map(element => element.id);
  for (const link of document.querySelectorAll('a[href]')) {
    if (!ids.includes(decodeURIComponent(link.hash.slice(1)))) wrong.push(`"${link.textContent}" leads nowhere`);
  }
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`${id} is there twice`);
  return wrong;
}

// hidden is what does not show on paper.
function hidden() {
  const wrong = [];
  for (const element of document.querySelectorAll('main li, main td, main pre')) {
    if (!element.checkVisibility()) wrong.push(`"${element.textContent.slice(0, 40)}" is not printed`);
  }
  return wrong;
}

// focused says where the keyboard is, and whether that can be seen.
function focused() {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  return {
    name: at === document.body ? '' : at.getAttribute('aria-label') || at.textContent.trim().replace(/\s+/g, ' '),
    outlined: parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none',
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}

// stops are all places where the tabulator is to stop, in their order.
function stops() {
  return [...document.querySelectorAll('a[href], summary, [tabindex="0"]')].filter(e => e.checkVisibility())
    .map(e => e.getAttribute('aria-label') || e.textContent.trim().replace(/\s+/g, ' '));
}
