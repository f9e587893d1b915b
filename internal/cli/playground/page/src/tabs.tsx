// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from 'preact';

export interface Tab { id: string; title: string; count?: number; bad?: boolean; content: ComponentChildren }

// Tabs shows one of its contents at a time; the others stay, so that they keep their state. Arrow keys change the tab
// (https://www.w3.org/WAI/ARIA/apg/patterns/tabs/).
export function Tabs({ label, tabs, current, onSelect }: { label: string; tabs: Tab[]; current: string; onSelect(id: string): void }) {
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const { id } = tabs[(next + tabs.length) % tabs.length]!;
    onSelect(id);
    document.getElementById('tab-' + id)?.focus();
  };
  return (
    <section class="tabs" aria-label={label}>
      <div role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map((tab) => (
          <button type="button" role="tab" key={tab.id} id={'tab-' + tab.id} aria-controls={'panel-' + tab.id} aria-selected={tab.id === current}
            tabIndex={tab.id === current ? 0 : -1} onClick={() => onSelect(tab.id)}>
            {tab.title}{tab.count ? <span class={'number' + (tab.bad ? ' bad' : '')}>{tab.count}<span class="unseen">{tab.bad ? ' problems' : ''}</span></span> : null}
          </button>
        ))}
      </div>
      {tabs.map((tab) => (
        <div role="tabpanel" key={tab.id} id={'panel-' + tab.id} aria-labelledby={'tab-' + tab.id} tabIndex={-1} hidden={tab.id !== current}><h2 class="unseen">{tab.title}</h2>{tab.content}</div>
      ))}
    </section>
  );
}
