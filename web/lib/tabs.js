// A credential of this browser session: kept for the tab, and handed to other tabs of this origin that ask for it.
//
// It is in the tab's session storage, so that a reload keeps it and the end of the tab takes it away, and never in a URL, a
// cookie or a storage that outlives the browser session. A new tab asks the others over a `BroadcastChannel`, which only
// pages of this origin can hear.

/** How long a new tab waits for the others before it asks the user. */
const ANSWER_MS = 250;

export class Kept {
  #place;
  #channel;
  #asked = [];
  #left;

  /**
   * @param {string} place Its name in the session storage, and that of the channel.
   * @param {() => void} left Called when another tab gave up the same credential.
   */
  constructor(place, left) {
    this.#place = place;
    this.#left = left;
    this.#channel = new BroadcastChannel(place);
    this.#channel.addEventListener("message", ({ data }) => this.#heard(data));
  }

  /** The credential, as it was kept; `null` without one. */
  get() {
    const text = sessionStorage.getItem(this.#place);
    return text === null ? null : JSON.parse(text);
  }

  keep(credential) {
    sessionStorage.setItem(this.#place, JSON.stringify(credential));
  }

  forget() {
    sessionStorage.removeItem(this.#place);
  }

  /** Forgets it, and so do all tabs that have the same. */
  giveUp() {
    const text = sessionStorage.getItem(this.#place);
    this.forget();
    if (text !== null) this.#channel.postMessage({ left: text });
  }

  /** Asks the other tabs. `offered` is called with each credential that one of them has, until the signal ends. */
  ask(offered, signal) {
    this.#asked.push(offered);
    signal.addEventListener("abort", () => { this.#asked = this.#asked.filter((one) => one !== offered); }, { once: true });
    this.#channel.postMessage({ asks: true });
  }

  #heard({ asks, offers, left }) {
    const text = sessionStorage.getItem(this.#place);
    if (asks && text !== null) this.#channel.postMessage({ offers: text });
    if (offers) for (const offered of this.#asked) offered(JSON.parse(offers));
    if (left !== undefined && left === text) {
      this.forget();
      this.#left();
    }
  }
}

/** Resolves once other tabs had the time to answer. */
export const answersWaited = () => new Promise((resolve) => { setTimeout(resolve, ANSWER_MS); });
