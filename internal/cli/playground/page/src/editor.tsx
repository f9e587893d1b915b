// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

import { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap, type CompletionContext } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';
import type { Completed, Problem } from './engine';

// The colours are those of the page, which also has a dark scheme.
const theme = EditorView.theme({
  '&': { height: '100%', fontSize: '0.875rem', backgroundColor: 'var(--paper)', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunk)', color: 'var(--soft)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--plain-wash)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--copied-wash)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--paper)', color: 'var(--ink)', border: '1px solid var(--edge)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--link)', color: 'var(--paper)' },
  '.cm-completionInfo': { maxWidth: '24rem', font: '0.8125rem/1.4 system-ui, sans-serif' },
  '.cm-diagnostic': { font: '0.875rem/1.4 system-ui, sans-serif', maxWidth: '40rem' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--copied)' },
  { tag: [tags.string, tags.content], color: 'var(--translated)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: 'var(--computed)' },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.meta], color: 'var(--soft)' },
]);

export interface EditorProps {
  label: string;
  // given is the text to begin with, or another one in its place, such as one with an accepted rule. What the user
  // types does not come back through it.
  given: { text: string };
  problems: Problem[];
  // goTo is a line to show; a new object shows it again.
  goTo?: { line: number };
  onChange(text: string): void;
  complete?(text: string, offset: number): Promise<Completed>;
}

// Editor edits YAML. It is in a shadow tree, so that its style sheets need no exception from the page's policy.
export function Editor({ label, given, problems, goTo, onChange, complete }: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const handlers = useRef({ onChange, complete });
  handlers.current = { onChange, complete };

  useEffect(() => {
    const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: 'open' });
    const parent = document.createElement('div');
    Object.assign(parent.style, { height: '100%' });
    root.replaceChildren(parent);
    const options = async (context: CompletionContext) => {
      const before = context.state.sliceDoc(0, context.pos);
      if (!context.explicit && !/[\w.{-]$|: $/.test(before)) return null;
      const found = await handlers.current.complete?.(context.state.doc.toString(), new TextEncoder().encode(before).length);
      if (!found?.options.length) return null;
      return {
        from: context.pos - found.typed.length,
        options: found.options.map((option) => ({
          label: option.label, detail: option.detail, info: option.info,
          type: option.isKey ? 'property' : 'constant', apply: option.isKey ? option.label + ': ' : option.label,
        })),
        validFor: /^[\w.[\]*-]*$/,
      };
    };
    view.current = new EditorView({
      parent, root,
      state: EditorState.create({
        doc: given.text,
        extensions: [
          lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), history(), foldGutter(), drawSelection(), indentOnInput(), bracketMatching(),
          closeBrackets(), yaml(), syntaxHighlighting(colours), theme, lintGutter(), search({ top: true }), EditorView.lineWrapping,
          autocompletion({ override: complete ? [options] : [], icons: false }),
          // Tab moves on to the next element of the page, as users of keyboards expect.
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) handlers.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  useEffect(() => {
    const current = view.current!.state.doc.toString();
    if (current !== given.text) view.current!.dispatch({ changes: { from: 0, to: current.length, insert: given.text } });
  }, [given]);

  useEffect(() => {
    const { state } = view.current!;
    view.current!.dispatch(setDiagnostics(state, problems.filter((problem) => problem.line).map((problem) => {
      const line = state.doc.line(Math.min(problem.line!, state.doc.lines));
      const from = Math.min(line.from + Math.max((problem.column ?? 1) - 1, 0), line.to);
      return { from, to: Math.max(from, line.to), severity: 'error', message: problem.message };
    })));
  }, [problems]);

  useEffect(() => {
    if (!goTo) return;
    const line = view.current!.state.doc.line(Math.min(Math.max(goTo.line, 1), view.current!.state.doc.lines));
    view.current!.dispatch({ selection: { anchor: line.from + (/^[\s-]*/.exec(line.text)?.[0].length ?? 0) }, effects: EditorView.scrollIntoView(line.from, { y: 'center' }) });
    view.current!.focus();
  }, [goTo]);

  return <div class="editor" ref={place} />;
}
