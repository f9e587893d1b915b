// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The questions that the page asks, and their answers: the types of the Go package playground.

export type TextName = 'crd' | 'policy' | 'objects';
export type Texts = Record<TextName, string>;

export interface Problem { text: TextName; line?: number; column?: number; path?: string; message: string }
export interface Field { version: string; path: string; owner: 'Exact' | 'Preserved' | 'Dropped'; rule?: string; partly?: boolean }
export interface Spoke { version: string; toHub: string; fromHub: string; fields: Field[]; drawing: string }
export interface Rule { id: string; path: string; kind: string; line: number }
export interface Source { path: string; value?: unknown }
export interface MadeField { path: string; value?: unknown; how: string; sources?: Source[]; rule?: string; ruleText?: string; owner: string }
export interface PreservedValue { version: string; path: string; value?: unknown; why: string; rule?: string }
export interface Step { from: string; to: string; fields: MadeField[]; preserved: PreservedValue[] | null; carried?: PreservedValue[]; dropped: PreservedValue[] | null }
export interface Difference { path: string; before: string; after: string }
export interface Conversion { to: string; text: string; steps: Step[]; back: Difference[]; error?: string }
export interface Converted { name: string; version: string; conversions: Conversion[] }
export interface Checked {
  problems: Problem[]; warnings: string[]; name: string; kind: string; hub: string; versions: string[];
  spokes: Spoke[]; rules: Rule[]; objects: Converted[]; moreObjects?: number; outcome: string; title: string; tried: string;
}
export interface Suggestion { spoke: string; rule: string; why: string; rivals: string[] }
export interface Ambiguous { version: string; path: string; why: string; candidates: string[] | null }
export interface Suggested { problems: Problem[]; policy?: string; suggestions: Suggestion[]; ambiguous: Ambiguous[] }
export interface Accepted { problems: Problem[]; policy: string; line: number }
export interface Option { label: string; detail?: string; info?: string; isKey?: boolean }
export interface Completed { typed: string; options: Option[] }
export interface Tested { problems: Problem[]; outcome: string; title: string; tried: string }
// Start is what the page begins with; live names the cluster whose objects can be tested, if there is one.
export interface Start { texts: Texts; live?: string }

// Engine answers questions: the server that serves the page, or WebAssembly in it.
export interface Engine {
  start(): Promise<Start>;
  ask<T>(question: string, body: object, signal?: AbortSignal): Promise<T>;
}

// engine returns what the page says that it has.
export function engine(): Engine {
  const kind = document.querySelector<HTMLMetaElement>('meta[name=engine]')?.content;
  return kind === 'wasm' ? wasm() : server();
}

// server asks the server, with the token of the address of the page. The address loses the token, so that it does not
// remain in the history.
function server(): Engine {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    sessionStorage.setItem('token', given);
    history.replaceState(null, '', location.pathname);
  }
  const authorization = 'Bearer ' + (sessionStorage.getItem('token') ?? '');
  const call = async (path: string, init: RequestInit) => {
    let answer: Response;
    try {
      answer = await fetch('api/' + path, { ...init, headers: { authorization, 'content-type': 'application/json' } });
    } catch (error) {
      if ((error as Error).name === 'AbortError') throw error;
      throw new Error('The playground does not answer. Is the command still running?');
    }
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  return {
    start: () => call('start', {}),
    ask: (question, body, signal) => call(question, { method: 'POST', body: JSON.stringify(body), ...(signal ? { signal } : {}) }),
  };
}

// wasm asks WebAssembly in a worker, so that the page does not wait for it.
function wasm(): Engine {
  const worker = new Worker('worker.js');
  const waiting = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>();
  let last = 0;
  worker.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) asked?.reject(new Error(data.error));
    else asked?.resolve(JSON.parse(data.answer) as never);
  };
  worker.onerror = (event) => {
    for (const asked of waiting.values()) asked.reject(new Error('The engine does not start: ' + event.message));
    waiting.clear();
  };
  const ask = <T>(question: string, body: object, signal?: AbortSignal) => new Promise<T>((resolve, reject) => {
    const id = ++last;
    waiting.set(id, { resolve, reject });
    signal?.addEventListener('abort', () => {
      waiting.delete(id);
      reject(new DOMException('superseded', 'AbortError'));
    });
    worker.postMessage({ id, question, body: JSON.stringify(body) });
  });
  return { start: () => ask('start', {}), ask };
}
