// What there is to see on a page: a function of the contrast that text needs.
(contrastMin) => {
  const shown = (element) => {
    const box = element.getBoundingClientRect();
    const what = `${element.tagName}.${element.getAttribute("class")}`;
    return { what, text: element.textContent.slice(0, 60), left: box.left, right: box.right, width: box.width, height: box.height };
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  // Of a colour, and of two beside each other, as WCAG 2 has them.
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour)
      .map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const parts = channels(colour);
      if (parts.length < 4 || parts[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const pale = all("h1, h2, h3, p, a, dt, dd, th, td, li, b, time, figcaption, svg text")
    // Numbers of marks in a drawing are on a badge, which is no background that can be asked for.
    .filter((element) => element.textContent.trim() && !element.matches("svg text.number"))
    .map((element) => {
      const style = getComputedStyle(element);
      const colour = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
      return { text: element.textContent.slice(0, 60), contrast: contrast(colour, ground(element)) };
    })
    .filter((found) => found.contrast < contrastMin);
  return {
    inner: innerWidth,
    whole: document.documentElement.scrollWidth,
    title: document.title,
    parts: all("section h2").map((element) => element.textContent),
    ground: getComputedStyle(document.body).backgroundColor,
    drawings: all(".plot > svg").map(shown),
    drawn: all("svg polyline, svg .dot, svg .badge").map(shown),
    inside: all(".plot svg text, .plot li").map(shown),
    pale,
  };
}
