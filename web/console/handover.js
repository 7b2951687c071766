// The last page of a sign-in with a provider: hands the answer to the console that began it, and closes.

const PATIENCE_MS = 3000;

const read = (name) => document.querySelector(`meta[name="${name}"]`).content;
const channel = new BroadcastChannel(read("channel"));
const answer = JSON.parse(read("answer"));
for (const name of ["answer", "channel"]) document.querySelector(`meta[name="${name}"]`).remove();

const nobody = setTimeout(() => {
  channel.close();
  document.getElementById("said").textContent =
    "The console that began this sign-in is not open any more. Open the console and sign in again.";
}, PATIENCE_MS);

channel.addEventListener("message", ({ data }) => {
  if (data !== "received") return;
  clearTimeout(nobody);
  channel.close();
  document.getElementById("said").textContent = "Done. This window can be closed.";
  close();
});
channel.postMessage(answer);
