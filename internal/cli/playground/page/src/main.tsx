// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

import { render } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Editor } from './editor';
import { engine, type Accepted, type Checked, type Completed, type Start, type Suggested, type Suggestion, type Tested, type TextName, type Texts } from './engine';
import { count, Fields, Objects, sentence, Suggestions, Tests } from './results';
import { Tabs } from './tabs';

const asked = engine();

const nothing: Checked = { problems: [], warnings: [], name: '', kind: '', hub: '', versions: [], spokes: [], rules: [], objects: [], outcome: '', title: '', tried: '' };

const titles: Record<TextName, string> = { policy: 'Policy', crd: 'Schemas', objects: 'Objects' };
const labels: Record<TextName, string> = { policy: 'ConversionPolicy', crd: 'CustomResourceDefinition', objects: 'Objects to convert' };
const names: TextName[] = ['policy', 'crd', 'objects'];

// pause is how long the page waits after a key before it asks, in milliseconds.
const pause = 250;

function Playground({ start }: { start: Start }) {
  const [texts, setTexts] = useState<Texts>(start.texts);
  const [given, setGiven] = useState(() => ({ policy: { text: start.texts.policy }, crd: { text: start.texts.crd }, objects: { text: start.texts.objects } }));
  const [checked, setChecked] = useState<Checked>(nothing);
  const [pending, setPending] = useState(true);
  const [error, setError] = useState('');
  const [text, showText] = useState<string>('policy');
  const [result, showResult] = useState<string>('fields');
  const [goTo, setGoTo] = useState<{ text: TextName; line: number }>();
  const [suggested, setSuggested] = useState<Suggested>();
  const [suggesting, setSuggesting] = useState(false);
  const [suggestError, setSuggestError] = useState('');
  const [tested, setTested] = useState<Tested>();
  const [testing, setTesting] = useState(false);
  const [testError, setTestError] = useState('');
  const [said, say] = useState('');
  const latest = useRef(texts);
  latest.current = texts;

  useEffect(() => {
    setPending(true);
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await asked.ask<Checked>('check', texts, abort.signal);
        // While a text is not valid, the last results stay: they do not jump away while the user types.
        setChecked((before) => (answer.versions.length ? answer : { ...before, problems: answer.problems }));
        setError('');
        setPending(false);
      } catch (failed) {
        if ((failed as Error).name === 'AbortError') return;
        setError((failed as Error).message);
        setPending(false);
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [texts]);

  const change = useCallback((name: TextName, to: string) => {
    setTexts((before) => (before[name] === to ? before : { ...before, [name]: to }));
  }, []);

  const give = (name: TextName, text: string) => setGiven((before) => ({ ...before, [name]: { text } }));

  const show = (name: TextName, line: number) => {
    showText(name);
    setGoTo({ text: name, line });
  };
  const goToRule = (path: string) => {
    const rule = checked.rules.find((one) => one.path === path);
    if (rule) show('policy', rule.line);
  };

  const suggest = async () => {
    setSuggesting(true);
    setSuggestError('');
    try {
      setSuggested(await asked.ask<Suggested>('suggest', latest.current));
    } catch (failed) {
      setSuggestError((failed as Error).message);
    }
    setSuggesting(false);
  };
  const accept = async (suggestions: Suggestion[]) => {
    let now = latest.current;
    let line = 0;
    setSuggestError('');
    try {
      for (const suggestion of suggestions) {
        const accepted = await asked.ask<Accepted>('accept', { ...now, suggestion });
        if (accepted.problems[0]) {
          setSuggestError(accepted.problems[0].message);
          break;
        }
        now = { ...now, policy: accepted.policy };
        line = accepted.line;
        setSuggested((before) => before && { ...before, suggestions: before.suggestions.filter((one) => one !== suggestion) });
      }
    } catch (failed) {
      setSuggestError((failed as Error).message);
    }
    if (!line) return;
    give('policy', now.policy);
    show('policy', line);
  };
  const test = async () => {
    setTesting(true);
    setTestError('');
    try {
      setTested(await asked.ask<Tested>('live', latest.current));
    } catch (failed) {
      setTestError((failed as Error).message);
    }
    setTesting(false);
  };
  const copy = async () => {
    await navigator.clipboard.writeText(latest.current.policy);
    say('The policy is copied.');
  };
  const save = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([latest.current.policy], { type: 'application/yaml' }));
    link.download = 'policy.yaml';
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const open = async (name: TextName, files: FileList | null) => {
    const read = await Promise.all([...(files ?? [])].map((file) => file.text()));
    if (read.length) give(name, read.join('\n---\n'));
  };

  const problemsOf = (name: TextName) => checked.problems.filter((problem) => problem.text === name);
  const valid = checked.problems.length === 0 && !error;
  const state = error || (pending ? 'Checking…' : valid ? sentence(checked.title) : count(checked.problems.length, 'problem') + ' in the texts');
  const tone = pending ? 'plain' : valid && checked.outcome === 'Passed' ? 'good' : 'bad';
  const unplaced = checked.spokes.reduce((n, spoke) => n + spoke.fields.filter((field) => field.owner === 'Preserved' && !field.rule).length, 0);

  return (
    <>
      <header>
        <div>
          <p class="eyebrow">conversion-operator playground</p>
          <h1>{checked.kind || 'Conversion'} <span class="name">{checked.name}</span></h1>
        </div>
        <p class={'outcome ' + tone} id="state" role="status" data-pending={pending}><span class="mark" aria-hidden="true" />{state}</p>
        <p class="actions"><button type="button" id="copy" onClick={copy}>Copy policy</button> <button type="button" id="save" onClick={save}>Save policy</button><span role="status" class="note">{said}</span></p>
      </header>
      <main>
        <div class="texts">
          <Tabs label="Texts" current={text} onSelect={showText} tabs={names.map((name) => ({
            id: name, title: titles[name], count: problemsOf(name).length, bad: true,
            content: (
              <>
                <Editor label={labels[name]} given={given[name]} problems={problemsOf(name)} onChange={(to) => change(name, to)}
                  {...(goTo?.text === name ? { goTo } : {})}
                  {...(name === 'policy' ? { complete: (policy: string, offset: number) => asked.ask<Completed>('complete', { ...latest.current, policy, offset }) } : {})} />
                <ul class="problems" aria-label={'Problems of ' + titles[name]}>{problemsOf(name).map((problem) => (
                  <li key={problem.path + problem.message} class="bad">
                    {problem.line ? <button type="button" class="link" onClick={() => show(name, problem.line!)}>line {problem.line}</button> : null} {problem.path && <code>{problem.path}</code>} {problem.message}
                  </li>
                ))}</ul>
                <p><label class="file">Open files <input type="file" accept=".yaml,.yml,.json" multiple={name === 'objects'} onChange={(event) => open(name, event.currentTarget.files)} /></label></p>
              </>
            ),
          }))} />
        </div>
        <div class="results" aria-busy={pending}>
          {!valid && checked.spokes.length > 0 && <p class="stale">These are the results of the last valid texts.</p>}
          <Tabs label="Results" current={result} onSelect={showResult} tabs={[
            { id: 'fields', title: 'Fields', count: unplaced, content: <Fields checked={checked} goTo={goToRule} /> },
            { id: 'conversions', title: 'Conversions', content: <Objects checked={checked} goTo={goToRule} /> },
            { id: 'suggestions', title: 'Suggestions', content: <Suggestions suggested={suggested} busy={suggesting} error={suggestError} onSuggest={suggest} onAccept={accept} onUse={(policy) => { give('policy', policy); setSuggested(undefined); showText('policy'); }} /> },
            { id: 'tests', title: 'Tests', content: <Tests checked={checked} {...(start.live ? { live: start.live } : {})} tested={tested} busy={testing} error={testError} onTest={test} /> },
          ]} />
        </div>
      </main>
    </>
  );
}

const root = document.getElementById('playground')!;
try {
  const start = await asked.start();
  root.replaceChildren();
  render(<Playground start={start} />, root);
} catch (error) {
  root.replaceChildren();
  render(<p class="outcome bad" role="alert" id="state">{(error as Error).message}</p>, root);
}
