// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

// prometheus evaluates rules as Prometheus does: one after the other at each tick, so
// that alerts see what was recorded at the same tick.
type prometheus struct {
	*memory
	engine *promql.Engine
	groups []group
	// recorded are the series that a rule gave at the last tick.
	recorded map[string]map[uint64]labels.Labels
	// active are the alerts that are pending or firing, by rule and labels.
	active map[string]map[uint64]*active
}

type active struct {
	labels labels.Labels
	value  float64
	since  time.Time
}

// firing is an alert that is sent.
type firing struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

func newPrometheus(groups []group) *prometheus {
	return &prometheus{
		memory: newMemory(), groups: groups,
		engine:   promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})}),
		recorded: map[string]map[uint64]labels.Labels{}, active: map[string]map[uint64]*active{},
	}
}

func (p *prometheus) tick(t *testing.T, now time.Time) {
	t.Helper()
	for _, group := range p.groups {
		for _, rule := range group.Rules {
			found := p.query(t, rule.Expr, now)
			if rule.Record != "" {
				p.record(rule, found, now)
			} else {
				p.activate(rule, found, now)
			}
		}
	}
}

func (p *prometheus) query(t *testing.T, expression string, now time.Time) promql.Vector {
	t.Helper()
	query, err := p.engine.NewInstantQuery(t.Context(), p, nil, expression, now)
	must(t, err)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return append(promql.Vector(nil), vector...)
}

func (p *prometheus) record(rule rule, found promql.Vector, now time.Time) {
	given := map[uint64]labels.Labels{}
	for _, one := range found {
		named := labels.NewBuilder(one.Metric).Set(model.MetricNameLabel, rule.Record)
		for name, value := range rule.Labels {
			named.Set(name, value)
		}
		given[named.Labels().Hash()] = named.Labels()
		p.add(named.Labels(), now, one.F)
	}
	for hash, before := range p.recorded[rule.Record] {
		if _, still := given[hash]; !still {
			p.end(before, now)
		}
	}
	p.recorded[rule.Record] = given
}

func (p *prometheus) activate(rule rule, found promql.Vector, now time.Time) {
	before := p.active[rule.Alert]
	p.active[rule.Alert] = map[uint64]*active{}
	for _, one := range found {
		bare := labels.NewBuilder(one.Metric).Del(model.MetricNameLabel).Labels()
		alert := &active{labels: bare, value: one.F, since: now}
		if known := before[bare.Hash()]; known != nil {
			alert.since = known.since
		}
		p.active[rule.Alert][bare.Hash()] = alert
	}
}

// firing are the alerts of the name that have been active for long enough.
func (p *prometheus) firing(t *testing.T, name string, now time.Time) []firing {
	t.Helper()
	var all []firing
	for _, group := range p.groups {
		for _, rule := range group.Rules {
			if rule.Alert != name {
				continue
			}
			for _, alert := range p.active[name] {
				if now.Sub(alert.since) >= rule.pending(t) {
					all = append(all, alert.sent(t, rule, now))
				}
			}
		}
	}
	return all
}

// sent fills in the rule's templates.
func (a *active) sent(t *testing.T, rule rule, now time.Time) firing {
	t.Helper()
	known := a.labels.Map()
	fill := func(text string) string {
		const variables = "{{$labels := .Labels}}{{$value := .Value}}"
		data := template.AlertTemplateData(known, nil, "", promql.Sample{Metric: a.labels, F: a.value})
		never := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
		filled, err := template.NewTemplateExpander(t.Context(), variables+text, rule.Alert, data, model.TimeFromUnixNano(now.UnixNano()), never, &url.URL{}, nil).Expand()
		must(t, err)
		return filled
	}
	sent := firing{Labels: maps.Clone(known), Annotations: map[string]string{}}
	for name, text := range rule.Labels {
		sent.Labels[name] = fill(text)
	}
	for name, text := range rule.Annotations {
		sent.Annotations[name] = fill(text)
	}
	return sent
}
