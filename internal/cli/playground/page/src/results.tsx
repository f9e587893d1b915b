// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks';
import type { Checked, Conversion, Field, MadeField, PreservedValue, Rule, Step, Suggested, Suggestion, Tested } from './engine';

// GoTo shows a rule in the editor, by its path in the policy.
export type GoTo = (path: string) => void;

export function count(n: number, noun: string): string { return `${n} ${noun}${n === 1 ? '' : 's'}`; }

const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value));

// place says where the value of a field is while the object is at the other version.
function place(field: Field): string {
  if (field.owner === 'Dropped') return 'dropped';
  if (field.owner === 'Preserved') return 'preserved';
  return field.rule ? 'rule' : 'copied';
}

function RuleLink({ path, rules, goTo }: { path: string | undefined; rules: Rule[]; goTo: GoTo }) {
  if (!path) return null;
  const kind = rules.find((rule) => rule.path === path)?.kind ?? 'rule';
  return <button type="button" class="link" onClick={() => goTo(path)} title={path}>{kind}</button>;
}

// Fields shows how the fields of each spoke and the hub correspond.
export function Fields({ checked, goTo }: { checked: Checked; goTo: GoTo }) {
  const [chosen, choose] = useState('');
  const [only, setOnly] = useState('all');
  const spoke = checked.spokes.find(({ version }) => version === chosen) ?? checked.spokes[0];
  if (!spoke) return <p class="none">Write a valid policy, and the fields of both versions are here.</p>;
  const counts = Map.groupBy(spoke.fields, place);
  const unplaced = spoke.fields.filter((field) => field.owner === 'Preserved' && !field.rule);
  const shown = spoke.fields.filter((field) => only === 'all' || place(field) === only);
  // Links of the drawing lead to rules in the editor.
  const follow = (event: MouseEvent) => {
    const id = (event.target as Element).closest('a')?.getAttribute('href')?.slice(1);
    if (!id) return;
    event.preventDefault();
    const rule = id === 'rules' ? checked.rules[0] : checked.rules.find((one) => one.id === id);
    if (rule) goTo(rule.path);
  };
  return (
    <>
      {checked.spokes.length > 1 && (
        <label class="choice">Spoke <select value={spoke.version} onChange={(event) => choose(event.currentTarget.value)}>
          {checked.spokes.map(({ version }) => <option key={version}>{version}</option>)}
        </select></label>
      )}
      <ul class="counts" aria-label="Fields">
        {[['copied', 'copied'], ['rule', 'by a rule'], ['preserved', 'preserved'], ['dropped', 'dropped']].map(([key, title]) => (
          <li key={key}><b>{counts.get(key!)?.length ?? 0}</b> {title}</li>
        ))}
      </ul>
      {unplaced.length > 0 && (
        <p class="unplaced">The other version has no place for {unplaced.slice(0, 5).map((field, i) => <>{i > 0 && ', '}<code key={i}>{field.version}:{field.path}</code></>)}
          {unplaced.length > 5 && ` and ${unplaced.length - 5} more`}: an annotation preserves {unplaced.length === 1 ? 'it' : 'them'}.</p>
      )}
      <div class="drawn" onClick={follow} dangerouslySetInnerHTML={{ __html: spoke.drawing }} />
      <details class="all">
        <summary><h3>All fields</h3> <span class="note">{count(spoke.fields.length, 'field')}</span></summary>
        <label class="choice">Show <select value={only} onChange={(event) => setOnly(event.currentTarget.value)}>
          <option value="all">all</option><option value="copied">copied</option><option value="rule">by a rule</option><option value="preserved">preserved</option><option value="dropped">dropped</option>
        </select></label>
        <div class="scroll" role="region" aria-label="Table of all fields" tabIndex={0}>
          <table>
            <thead><tr><th scope="col">Version</th><th scope="col">Field</th><th scope="col">Is</th><th scope="col">Rule</th></tr></thead>
            <tbody>{shown.slice(0, 2000).map((field) => (
              <tr key={field.version + field.path}><td>{field.version}</td><th scope="row"><code>{field.path}</code></th>
                <td>{{ copied: 'copied', rule: field.partly ? 'converted, some values preserved' : 'converted', preserved: 'preserved', dropped: 'dropped' }[place(field)]}</td>
                <td><RuleLink path={field.rule} rules={checked.rules} goTo={goTo} /></td></tr>
            ))}</tbody>
          </table>
        </div>
        {shown.length > 2000 && <p class="note">And {shown.length - 2000} more.</p>}
      </details>
    </>
  );
}

// Objects shows one object at every other version, and what comes back.
export function Objects({ checked, goTo }: { checked: Checked; goTo: GoTo }) {
  const [chosen, choose] = useState(0);
  if (!checked.spokes.length) return <p class="none">Write a valid policy, and your objects are here at every version.</p>;
  const object = checked.objects[Math.min(chosen, checked.objects.length - 1)];
  if (!object) return <p class="none">Paste objects of the kind {checked.kind} into “Objects”, and they are here at every version.</p>;
  return (
    <>
      <label class="choice">Object <select value={String(Math.min(chosen, checked.objects.length - 1))} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {checked.objects.map((one, i) => <option key={i} value={String(i)}>{one.name} ({one.version})</option>)}
      </select></label>
      {checked.moreObjects ? <p class="note">{count(checked.moreObjects, 'more object')} are tested and not shown.</p> : null}
      {object.conversions.map((conversion) => <One key={conversion.to} from={object.version} conversion={conversion} rules={checked.rules} goTo={goTo} />)}
    </>
  );
}

function One({ from, conversion, rules, goTo }: { from: string; conversion: Conversion; rules: Rule[]; goTo: GoTo }) {
  const title = `${from} → ${conversion.to}`;
  if (conversion.error) return <section class="conversion"><h3>{title}</h3><p class="bad">{conversion.error}</p></section>;
  return (
    <section class="conversion" aria-label={title}>
      <h3>{title}</h3>
      {conversion.back.length === 0
        ? <p class="back good">Comes back to {from} unchanged.</p>
        : <><p class="back bad">Comes back to {from} with {count(conversion.back.length, 'difference')}:</p>
            <ul class="findings">{conversion.back.map((d) => <li class="bad" key={d.path}><code>{d.path}</code>: {d.before || 'no value'} → {d.after || 'no value'}</li>)}</ul></>}
      <pre aria-label={`Object at ${conversion.to}`} tabIndex={0}><code>{conversion.text}</code></pre>
      {conversion.steps.map((step) => <Explained key={step.to} step={step} rules={rules} goTo={goTo} />)}
    </section>
  );
}

const origins: Record<string, string> = { Copied: 'copied', Computed: 'by a rule', Restored: 'from the annotation', Filled: 'filled in by a rule' };

function Explained({ step, rules, goTo }: { step: Step; rules: Rule[]; goTo: GoTo }) {
  const from = (field: MadeField) => (field.sources ?? []).map((source) => source.path).join(', ');
  // Fields that are copied to the same path explain themselves.
  const told = step.fields.filter((field) => field.how !== 'Copied' || field.rule || from(field) !== field.path);
  return (
    <>
      <h4>What made the fields of {step.to}</h4>
      <div class="scroll" role="region" aria-label={`Fields of ${step.to} and what made them`} tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Field</th><th scope="col">Value</th><th scope="col">Is</th><th scope="col">From</th></tr></thead>
          <tbody>{told.map((field) => (
            <tr key={field.path}><th scope="row"><code>{field.path}</code></th><td><code>{json(field.value)}</code></td>
              <td>{origins[field.how] ?? field.how} <RuleLink path={field.rule} rules={rules} goTo={goTo} /></td><td><code>{from(field)}</code></td></tr>
          ))}</tbody>
        </table>
      </div>
      {told.length < step.fields.length && <p class="note">{count(step.fields.length - told.length, 'other field')} copied to the same path.</p>}
      <Values title={`Preserved, because ${step.to} cannot express it`} values={step.preserved} rules={rules} goTo={goTo} />
      <Values title="Stays in the annotation" values={step.carried} rules={rules} goTo={goTo} />
      <Values title="Dropped" values={step.dropped} rules={rules} goTo={goTo} bad />
    </>
  );
}

function Values({ title, values, rules, goTo, bad }: { title: string; values?: PreservedValue[] | null; rules: Rule[]; goTo: GoTo; bad?: boolean }) {
  if (!values?.length) return null;
  return (
    <>
      <h4>{title}</h4>
      <ul class="findings">{values.map((value) => (
        <li key={value.path} class={bad ? 'bad' : 'warning'}><code>{value.path}</code> {value.value !== undefined && <code>{json(value.value)}</code>}
          <p class="note">{value.why} <RuleLink path={value.rule} rules={rules} goTo={goTo} /></p></li>
      ))}</ul>
    </>
  );
}

export interface SuggestionsProps {
  suggested: Suggested | undefined; busy: boolean; error: string;
  onSuggest(): void; onAccept(suggestions: Suggestion[]): void; onUse(policy: string): void;
}

// Suggestions drafts rules that the user accepts one by one.
export function Suggestions({ suggested, busy, error, onSuggest, onAccept, onUse }: SuggestionsProps) {
  return (
    <>
      <p>From names, types and descriptions of the fields that have no rule. What is ambiguous gets no suggestion.</p>
      <p><button type="button" id="suggest" onClick={onSuggest} disabled={busy}>Suggest rules</button></p>
      <div role="status">
        {error && <p class="bad">{error}</p>}
        {suggested && !suggested.problems.length && !suggested.policy && suggested.suggestions.length === 0 && <p>No field is so much like another one that a rule is likely.</p>}
        {suggested?.problems.map((problem) => <p class="bad" key={problem.message}>{problem.message}</p>)}
      </div>
      {suggested?.policy && <><pre tabIndex={0} aria-label="Drafted policy"><code>{suggested.policy}</code></pre>
        <p><button type="button" id="use" onClick={() => onUse(suggested.policy!)}>Use this policy</button></p></>}
      {suggested && suggested.suggestions.length > 0 && (
        <>
          <ul class="suggestions">{suggested.suggestions.map((one) => (
            <li key={one.spoke + one.rule}>
              <code>{one.rule}</code>
              <p class="note">Spoke {one.spoke}. {one.why}{one.rivals.length > 0 && ` Rivals: ${one.rivals.join('; ')}.`}</p>
              <button type="button" class="accept" aria-label={`Accept ${one.rule}`} onClick={() => onAccept([one])}>Accept</button>
            </li>
          ))}</ul>
          {suggested.suggestions.length > 1 && <p><button type="button" id="accept-all" onClick={() => onAccept(suggested.suggestions)}>Accept all</button></p>}
        </>
      )}
      {suggested && suggested.ambiguous.length > 0 && (
        <>
          <h3>Ambiguous</h3>
          <ul class="findings">{suggested.ambiguous.map((one) => (
            <li class="warning" key={one.version + one.path}><code>{one.version}:{one.path}</code>: {one.why}{one.candidates?.length ? ': ' + one.candidates.join('; ') : ''}</li>
          ))}</ul>
        </>
      )}
    </>
  );
}

// Tests shows what verify finds, for the objects of the page and for those of a cluster.
export function Tests({ checked, live, tested, busy, error, onTest }: {
  checked: Checked; live?: string; tested: Tested | undefined; busy: boolean; error: string; onTest(): void;
}) {
  if (!checked.spokes.length) return <p class="none">Write a valid policy, and the results for objects are here.</p>;
  return (
    <>
      <p class={'outcome ' + (checked.outcome === 'Passed' ? 'good' : 'bad')}><span class="mark" aria-hidden="true" />{sentence(checked.title)}</p>
      {checked.warnings.length > 0 && <ul class="findings">{checked.warnings.map((warning) => <li class="warning" key={warning}>{warning}</li>)}</ul>}
      <div class="drawn" dangerouslySetInnerHTML={{ __html: checked.tried }} />
      {live && (
        <section class="live">
          <h2>Objects of a cluster</h2>
          <p>The objects are read, and nothing is written. The cluster is {live}.</p>
          <p><button type="button" id="live" onClick={onTest} disabled={busy}>Test its objects</button></p>
          <div role="status">
            {busy && <p>Reading objects…</p>}
            {error && <p class="bad">{error}</p>}
            {tested?.problems.map((problem) => <p class="bad" key={problem.message}>{problem.message}</p>)}
          </div>
          {tested && !tested.problems.length && <>
            <p class={'outcome ' + (tested.outcome === 'Passed' ? 'good' : 'bad')}><span class="mark" aria-hidden="true" />{sentence(tested.title)}</p>
            <div class="drawn" dangerouslySetInnerHTML={{ __html: tested.tried }} />
          </>}
        </section>
      )}
    </>
  );
}

export function sentence(text: string): string { return text.slice(0, 1).toUpperCase() + text.slice(1); }
