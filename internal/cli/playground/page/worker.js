// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the engine as WebAssembly, outside the page's thread.
importScripts('wasm_exec.js');

const ready = (async () => {
  const go = new Go();
  const compressed = await fetch('engine.wasm.gz');
  const body = new Response(compressed.body.pipeThrough(new DecompressionStream('gzip')), { headers: { 'content-type': 'application/wasm' } });
  const { instance } = await WebAssembly.instantiateStreaming(body, go.importObject);
  go.run(instance);
})();

onmessage = async ({ data: { id, question, body } }) => {
  try {
    await ready;
    postMessage({ id, ...(question === 'start' ? { answer: await (await fetch('start.json')).text() } : answer(question, body)) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
