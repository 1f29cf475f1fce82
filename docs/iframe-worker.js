// Search in pages opened from disk: browsers start no worker from a file, so its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((resolve) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow;
          // What the script posts is for the page.
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => resolve(inside));
          inside.document.head.append(script);
        });
      });
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
