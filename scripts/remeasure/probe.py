"""What is asked of a page inside the browser: settle, measure, scroll, describe a stretch.

The script runs in a world of its own beside the page's scripts, so that they can neither see nor redefine it.
Every wait in it has a cap; a page that never answers is ended from outside.
"""

SCRIPT = r"""
(() => {
  const later = (ms) => new Promise((done) => setTimeout(done, ms));
  const capped = (wait, ms) => Promise.race([wait, later(ms)]);
  const frame = () => capped(new Promise((done) => requestAnimationFrame(() => done())), 250);
  const view = () => document.scrollingElement || document.documentElement;
  // Pixels of content to the left of the window, on right-to-left pages; x counts from its left edge.
  let shift = 0;
  const go = (x, y) => window.scrollTo({ left: x - shift, top: y, behavior: 'instant' });
  const pictures = () => Promise.allSettled([...document.images].map((image) => image.decode()));

  const still = () => {
    for (const animation of document.getAnimations()) {
      try { animation.finish(); } catch { animation.cancel(); }
    }
  };

  // A page whose real scroller is a box as large as the window shows one window of its content; let it grow.
  const unpin = () => {
    const root = document.documentElement, body = document.body;
    if (!body) return;
    const grow = (element) => {
      for (const [name, value] of [['height', 'auto'], ['max-height', 'none'], ['overflow-y', 'visible']]) {
        element.style.setProperty(name, value, 'important');
      }
    };
    const large = (e) => e.clientHeight > innerHeight / 2 && e.clientWidth > innerWidth / 2;
    const hides = (e) => /auto|scroll|hidden|clip|overlay/.test(getComputedStyle(e).overflowY);
    const scrolls = (e) => /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
    const pinned = [...body.getElementsByTagName('*')].filter(
      (e) => e.scrollHeight > e.clientHeight + 1 && large(e) && scrolls(e));
    if (pinned.length || (hides(body) && body.scrollHeight > body.clientHeight + 1) || hides(root)) {
      if (hides(body) || pinned.length) grow(body);
      grow(root);
    }
    for (const element of pinned) {
      for (let e = element; e && e !== body; e = e.parentElement) {
        grow(e);
        if (!/fixed|absolute/.test(getComputedStyle(e).position)) continue;
        e.style.setProperty('position', 'relative', 'important');
      }
    }
  };

  const bottom = () => {
    const body = document.body;
    if (!body) return document.documentElement.getBoundingClientRect().bottom + scrollY;
    const range = document.createRange();
    range.selectNodeContents(body);
    let lowest = Math.max(range.getBoundingClientRect().bottom, body.getBoundingClientRect().bottom);
    for (const element of body.getElementsByTagName('*')) {
      const box = element.getBoundingClientRect();
      if (box.width && box.height && box.bottom > lowest) lowest = box.bottom;
    }
    return lowest + scrollY;
  };
  const height = () => Math.max(0, Math.ceil(Math.min(view().scrollHeight, bottom()) - 0.01));

  const width = () => {
    const hidden = [document.documentElement, document.body].some(
      (e) => e && /hidden|clip/.test(getComputedStyle(e).overflowX));
    return hidden ? innerWidth : Math.max(innerWidth, view().scrollWidth);
  };

  const visible = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const boxes = (pageWidth, pageHeight) => {
    const found = [];
    for (const image of document.images) {
      if (!image.naturalWidth || !visible(image)) continue;
      const box = image.getBoundingClientRect();
      const x0 = Math.max(0, Math.round(box.left + scrollX + shift));
      const y0 = Math.max(0, Math.round(box.top + scrollY));
      const x1 = Math.min(pageWidth, Math.round(box.right + scrollX + shift));
      const y1 = Math.min(pageHeight, Math.round(box.bottom + scrollY));
      if (x1 - x0 >= 32 && y1 - y0 >= 24) found.push([x0, y0, x1 - x0, y1 - y0]);
    }
    return found;
  };

  const walk = async () => {
    for (let y = 0, end = height(); y < end && y < 200000; y += innerHeight) { go(shift, y); await frame(); }
    go(shift, 0);
    await frame();
  };

  const settle = async (o) => {
    for (const e of document.querySelectorAll('img[loading=lazy], iframe[loading=lazy]')) e.loading = 'eager';
    await capped(Promise.all([document.fonts.ready, pictures()]), o.wait_ms);
    unpin();
    const live = [...document.scripts].some((s) => !s.type || /javascript|module/.test(s.type));
    if (o.careful || (live && height() > innerHeight)) {
      await walk();
      if (o.careful) await later(500);
      await capped(pictures(), o.wait_ms);
    }
    const start = performance.now();
    const first = height();
    let last = -1, now = first, settled = true;
    // Without scripts and animations nothing moves after the load: no frame has to be waited for.
    if (!live && !document.getAnimations().length && now <= o.max_height_px) last = now;
    while (now !== last) {
      if (now > o.max_height_px || performance.now() - start > o.settle_ms) { settled = false; break; }
      last = now;
      still();
      await frame(); await frame();
      now = height();
    }
    go(shift, 0);
    return { ...measure(), settled, first };
  };

  const measure = () => {
    const h = height(), w = width(), body = document.body;
    const rtl = [document.documentElement, body].some((e) => e && getComputedStyle(e).direction === 'rtl');
    shift = rtl ? w - innerWidth : 0;
    const media = [...document.querySelectorAll('img,svg,canvas,video,iframe,object,embed,input,button')];
    return {
      height: h, width: w, pictures: boxes(w, h), url: location.href,
      text: body ? body.innerText.trim().slice(0, 2000) : '',
      sources: [...document.images].slice(0, 20).map((image) => image.currentSrc),
      media: media.filter(visible).length,
      left: shift,
    };
  };

  // What is fixed to the window belongs to the first tile only; on others it would hide the text below it.
  const unstick = () => {
    for (const element of document.body ? document.body.getElementsByTagName('*') : []) {
      const position = getComputedStyle(element).position;
      if (position === 'fixed') element.style.setProperty('visibility', 'hidden', 'important');
      if (position === 'sticky') {
        element.style.setProperty('position', 'relative', 'important');
        element.style.setProperty('inset', 'auto', 'important');
      }
    }
  };

  const scroll = async (x, y, first) => {
    if (first) unstick();
    go(x, y);
    const waiting = [...document.images].filter((image) => !image.complete);
    if (waiting.length) await capped(Promise.allSettled(waiting.map((image) => image.decode())), 500);
    return [scrollX + shift, scrollY];
  };

  const grey = ([r, g, b]) => 0.3 * r + 0.59 * g + 0.11 * b;
  const colour = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== 'none') return null;
      const c = colour(style.backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const readable = (element) => {
    const ink = colour(getComputedStyle(element).color), paper = ground(element);
    if (ink.length === 4 && ink[3] < 0.2) return false;
    return !paper || Math.abs(grey(ink) - grey(paper)) > 24;
  };
  const patterned = (source) => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 32;
    const context = canvas.getContext('2d');
    try {
      context.fillStyle = 'white';
      context.fillRect(0, 0, 32, 32);
      context.drawImage(source, 0, 0, 32, 32);
      const data = context.getImageData(0, 0, 32, 32).data;
      const greys = [];
      for (let i = 0; i < data.length; i += 4) greys.push(grey([data[i], data[i + 1], data[i + 2]]));
      return Math.max(...greys) - Math.min(...greys) > 24;
    } catch { return true; }
  };
  const onTop = (element, box) => {
    const x = (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2;
    const y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
    const hit = document.elementFromPoint(x, y);
    return !hit || hit === element || element.contains(hit) || hit.contains(element);
  };

  // Texts and pictures that lie in a rectangle of the page, relative to it, each with whether one can see it.
  const describe = (x0, y0, w, h) => {
    go(x0, y0);
    const found = [];
    const add = (kind, what, element, box, shows) => {
      const left = box.left + scrollX + shift - x0, top = box.top + scrollY - y0;
      const middle = [left + box.width / 2, top + box.height / 2];
      const inside = middle[0] >= 0 && middle[0] < w && middle[1] >= 0 && middle[1] < h;
      if (!box.width || box.height < 6 || !inside) return;
      const seen = visible(element) && shows() && onTop(element, box);
      found.push([kind, what, ...[left, top, box.width, box.height].map((v) => Math.round(v * 4)), seen]);
    };
    const texts = document.createTreeWalker(document.body || document.documentElement, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const text = node.data.trim(), parent = node.parentElement;
      if (!text || !parent || /^(script|style|noscript|template)$/i.test(parent.tagName)) continue;
      range.selectNodeContents(node);
      const whole = range.getBoundingClientRect();
      if (whole.bottom + scrollY <= y0 || whole.top + scrollY >= y0 + h) continue;
      // A text that goes on beyond the rectangle is known by its lines' boxes alone.
      const inside = whole.top + scrollY >= y0 && whole.bottom + scrollY <= y0 + h;
      const what = inside ? text.slice(0, 200) : '';
      for (const box of range.getClientRects()) add('text', what, parent, box, () => readable(parent));
    }
    for (const e of document.querySelectorAll('img,canvas')) {
      const what = e.currentSrc || '';
      add(e.tagName.toLowerCase(), what, e, e.getBoundingClientRect(), () => patterned(e));
    }
    return found;
  };

  return { settle, measure, scroll, describe };
})()
"""
