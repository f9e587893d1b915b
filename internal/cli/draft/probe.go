// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Convert asks a converter for objects at another version. The error is an ErrRefused if the converter
// answers that it does not convert them; any other error ends the draft.
type Convert func(to string, objects [][]byte) ([][]byte, error)

// ErrRefused is an answer that a converter does not convert objects.
var ErrRefused = errors.New("the converter refuses the objects")

const (
	// maxObjects bounds the objects that a converter gets for each version, maxRequests its requests, and
	// batch the objects in a request.
	maxObjects, maxRequests, batch = 6000, 3000, 100
	// repeated is how many objects are sent again, to see whether the answer is the same.
	repeated = 100
	// maxProblems bounds the problems that are listed.
	maxProblems = 20
)

// Probe says how a converter was asked.
type Probe struct {
	// Requests and Objects were sent, and Refused of the objects were not converted.
	Requests int `json:"requests"`
	Objects  int `json:"objects"`
	Refused  int `json:"refused"`
	// Problems are what makes the answers unreliable.
	Problems []string `json:"problems"`
	// NotProbed are fields for which the converter got no value.
	NotProbed []Place `json:"notProbed"`
}

// prober asks a converter about every field.
type prober struct {
	*drafter
	report       *Probe
	observations []*observation
	total        int
	// refusal is the last one.
	refusal error
	// bases is what the converter makes of the base objects, by the direction.
	bases map[bool]entries
}

// question is an object for the converter.
type question struct {
	object  []byte
	changed *field
}

func (p *prober) run() error {
	sides := []struct {
		root  *field
		toHub bool
	}{{p.guesser.spoke, true}, {p.guesser.hub, false}}
	questions := map[bool][]question{}
	for _, side := range sides {
		questions[side.toHub] = p.questions(side.root, p.version(side.toHub))
		p.total += 2 * (len(questions[side.toHub])/batch + 1)
	}
	for _, side := range sides {
		if err := p.askAll(questions[side.toHub], side.toHub); err != nil {
			return err
		}
	}
	if len(p.observations) == 0 && p.refusal != nil {
		return fmt.Errorf("the converter refuses every object: %w", p.refusal)
	}
	for _, o := range p.observations {
		o.base = p.bases[o.toHub]
	}
	return p.repeat()
}

// version returns the version that objects are converted from.
func (p *prober) version(toHub bool) string {
	if toHub {
		return p.judge.spoke
	}
	return p.judge.hub
}

// askAll asks the base object, and then all others and their answers.
func (p *prober) askAll(questions []question, toHub bool) error {
	base, err := p.ask(questions[:1], toHub)
	if err != nil {
		return err
	}
	if len(base) > 0 {
		p.bases[toHub] = base[0].out
	}
	answered, err := p.ask(questions[1:], toHub)
	if err != nil {
		return err
	}
	answeredFields := map[*field]bool{}
	var back []question
	for _, o := range answered {
		if p.bases[toHub] == nil {
			o.changed = nil
		}
		if o.changed != nil {
			answeredFields[o.changed] = true
		}
		if o.changed == nil || len(back) < maxObjects/4 {
			back = append(back, question{o.answer, nil})
		}
	}
	p.observations = append(p.observations, append(base, answered...)...)
	p.noteUnanswered(questions, answeredFields, toHub)
	returned, err := p.ask(back, !toHub)
	p.observations = append(p.observations, returned...)
	return err
}

func (p *prober) noteUnanswered(questions []question, answered map[*field]bool, toHub bool) {
	noted := map[*field]bool{}
	for _, q := range questions {
		if q.changed != nil && !answered[q.changed] && !noted[q.changed] {
			noted[q.changed] = true
			p.report.NotProbed = append(p.report.NotProbed, Place{p.version(toHub), q.changed.String()})
		}
	}
}

// ask returns what the converter makes of objects, without those that it refuses.
func (p *prober) ask(questions []question, toHub bool) ([]*observation, error) {
	var all []*observation
	for some := range slices.Chunk(questions, batch) {
		found, err := p.askSome(some, toHub)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// askSome sends one request, and halves it while the converter refuses it.
func (p *prober) askSome(questions []question, toHub bool) ([]*observation, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	if p.report.Requests >= maxRequests {
		p.problem("the converter refuses many objects, and %d requests were not enough", maxRequests)
		return nil, nil
	}
	objects := make([][]byte, len(questions))
	for i, q := range questions {
		objects[i] = q.object
	}
	answers, err := p.convert(toHub, objects)
	if errors.Is(err, ErrRefused) {
		if len(questions) == 1 {
			p.report.Refused++
			p.refusal = err
			return nil, nil
		}
		half := len(questions) / 2
		first, err := p.askSome(questions[:half], toHub)
		if err != nil {
			return nil, err
		}
		second, err := p.askSome(questions[half:], toHub)
		return append(first, second...), err
	}
	if err != nil {
		return nil, err
	}
	return p.read(questions, answers, toHub)
}

func (p *prober) convert(toHub bool, objects [][]byte) ([][]byte, error) {
	p.report.Requests++
	p.report.Objects += len(objects)
	answers, err := p.input.Convert(p.version(!toHub), objects)
	if p.input.Progress != nil {
		p.input.Progress(p.report.Requests, max(p.total, p.report.Requests))
	}
	if err == nil && len(answers) != len(objects) {
		err = fmt.Errorf("the converter answers with %d objects, not %d", len(answers), len(objects))
	}
	return answers, err
}

func (p *prober) read(questions []question, answers [][]byte, toHub bool) (all []*observation, err error) {
	for i, q := range questions {
		object, err := preserved.Decode(q.object)
		if err != nil {
			return nil, err
		}
		answer, err := preserved.Decode(answers[i])
		if err != nil {
			return nil, fmt.Errorf("read an answer of the converter: %w", err)
		}
		if problem := p.identity(object, answer, toHub); problem != "" {
			p.problem("%s", problem)
			continue
		}
		all = append(all, &observation{
			toHub: toHub, object: q.object, changed: q.changed, answer: bare(answer),
			in: entriesOf(p.judge.roots[!toHub], object), out: entriesOf(p.judge.roots[toHub], answer),
		})
	}
	return all, nil
}

// identity returns what an answer changes that no converter may change.
func (p *prober) identity(object, answer any, toHub bool) string {
	before, _ := object.(map[string]any)
	after, isObject := answer.(map[string]any)
	if !isObject {
		return "an answer of the converter is no object"
	}
	if want := p.input.CRD.Spec.Group + "/" + p.version(!toHub); after["apiVersion"] != want {
		return fmt.Sprintf("the converter answers with apiVersion %v, not %s", after["apiVersion"], want)
	}
	left, _ := before["metadata"].(map[string]any)
	right, _ := after["metadata"].(map[string]any)
	if before["kind"] != after["kind"] || left["name"] != right["name"] || left["namespace"] != right["namespace"] || left["uid"] != right["uid"] {
		return "the converter changes the kind, name, namespace or uid of an object"
	}
	if !sameValue(textOrEmpty(left["labels"]), textOrEmpty(right["labels"])) {
		return "the converter changes labels, and this command drafts no rules for labels and annotations"
	}
	return ""
}

func textOrEmpty(value any) string {
	if members, isObject := value.(map[string]any); value == nil || isObject && len(members) == 0 {
		return "{}"
	}
	return string(preserved.Encode(value))
}

func (p *prober) problem(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(p.report.Problems, problem) && len(p.report.Problems) < maxProblems {
		p.report.Problems = append(p.report.Problems, problem)
	}
}

// repeat sends some objects again.
func (p *prober) repeat() error {
	for _, toHub := range []bool{true, false} {
		var again []*observation
		for _, o := range p.observations {
			if o.toHub == toHub && len(again) < repeated {
				again = append(again, o)
			}
		}
		if len(again) == 0 {
			p.problem("the converter refuses every object to %s", p.version(!toHub))
			continue
		}
		objects := make([][]byte, len(again))
		for i, o := range again {
			objects[i] = o.object
		}
		answers, err := p.convert(toHub, objects)
		if errors.Is(err, ErrRefused) {
			p.problem("the converter refuses objects to %s that it converted before", p.version(!toHub))
			continue
		}
		if err != nil {
			return err
		}
		for i, o := range again {
			object, err := preserved.Decode(answers[i])
			if err != nil || !bytes.Equal(bare(object), o.answer) {
				p.problem("the converter does not give the same answer each time, to %s: ask it when it is not changing", p.version(!toHub))
				break
			}
		}
	}
	return nil
}
