// A stand-in for a language model, which can't run in a test: an OpenAI-compatible chat endpoint.

import { once } from "node:events";
import { createServer } from "node:http";

/**
 * Starts one on a free port.
 *
 * @param {{entities?: {name: string, alias?: string}[], answer?: string, quote?: string}} [says] The tools that it
 *   finds in a text that contains their names, and its answer to every question, with what it quotes of the first
 *   source.
 */
export async function model({ entities = [], answer = "", quote = "" } = {}) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const {
      messages,
      response_format: {
        json_schema: { name },
      },
    } = JSON.parse(body);
    const said = messages.map(({ content }) => content).join("\n");
    const content = ({ extraction, evolution }[name] ?? synthesis)(said);
    const message = { role: "assistant", content: JSON.stringify(content) };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ message, finish_reason: "stop" }] }));
  });
  const extraction = (said) => ({
    entities: entities
      .filter((entity) => said.includes(entity.name))
      .map((entity) => ({
        name: entity.name,
        node_type: "tool",
        description: "",
        confidence: 0.9,
        quote: entity.name,
        aliases: entity.alias ? [entity.alias] : [],
        reasoning: "",
      })),
    relations: [],
  });
  const evolution = () => ({ action: "add", target: "", merged: "" });
  const synthesis = () => ({ answer, confidence: 0.9, citations: [{ source: "S1", quote }] });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    environment: {
      LOCAL_LLM_PROVIDER: "openai",
      LOCAL_LLM_MODEL: "stand-in",
      LOCAL_LLM_RETRIES: "0",
      LOCAL_LLM_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`,
    },
    end: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
