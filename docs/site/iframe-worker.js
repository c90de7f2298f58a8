/* SPDX-License-Identifier: Apache-2.0 */
/* Browsers start no Worker on a page that was opened from the file system. Search runs in one, so there its script runs in
 * a hidden frame instead. The theme looks for the name IFrameWorker, and its plugin "offline" for this file's name. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>Search</title>";
      this.frame.addEventListener("load", () => this.#start(url), { once: true });
      document.documentElement.append(this.frame);
    }

    #start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      });
      script.addEventListener("error", () => this.dispatchEvent(new ErrorEvent("error", { message: `cannot load ${url}` })));
      inside.document.head.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
