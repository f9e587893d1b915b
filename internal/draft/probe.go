// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
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

func newProber(d *drafter) *prober {
	return &prober{drafter: d, bases: map[bool]entries{}, report: &Probe{Problems: []string{}, NotProbed: []Place{}}}
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
		p.problem("the converter refuses so many objects that %d requests were not enough", maxRequests)
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

// questions returns the base object of a version, objects that differ from it in one field, and objects with
// all fields.
func (p *prober) questions(root *field, version string) []question {
	m := &maker{crd: p.input.CRD.Spec.Group + "/" + version, kind: p.input.CRD.Spec.Names.Kind, namespaced: p.input.CRD.Spec.Scope == "Namespaced"}
	leaves := p.leaves(root)
	all := []question{{m.object(root, nil, 0), nil}}
	most := 8
	for most > 1 && len(leaves)*most > maxObjects {
		most--
	}
	// Fields that the schemas do not pair come first.
	slices.SortStableFunc(leaves, func(a, b *field) int { return cmp.Compare(p.rank(a), p.rank(b)) })
	for _, leaf := range leaves {
		before := len(all)
		for i := range forms(leaf, most) {
			if object := m.object(root, leaf, i+1); object != nil && len(all) < maxObjects {
				all = append(all, question{object, leaf})
			}
		}
		if len(all) == before {
			p.report.NotProbed = append(p.report.NotProbed, Place{version, leaf.String()})
		}
	}
	for i := range 4 {
		m.all = true
		all = append(all, question{m.object(root, nil, i+1), nil})
	}
	return all
}

func (p *prober) rank(f *field) int {
	if p.guesser.pairs.partner[f] == nil {
		return 0
	}
	return 1
}

// leaves returns the fields below root that hold values.
func (p *prober) leaves(root *field) (leaves []*field) {
	var walk func(f *field)
	walk = func(f *field) {
		if len(f.children) == 0 && f.parent != nil {
			leaves = append(leaves, f)
		}
		for _, name := range slices.Sorted(maps.Keys(f.children)) {
			walk(f.children[name])
		}
	}
	walk(root)
	return leaves
}

// forms returns how many different values of a field are tried.
func forms(f *field, most int) int {
	switch {
	case len(f.schema.Enum) > 0:
		return min(len(f.schema.Enum), 4*most)
	case f.kind == "boolean":
		return 2
	case f.kind == "string":
		return most
	case f.kind == "integer" || f.kind == "number" || f.kind == kindIntOrString:
		return min(3, most)
	}
	return min(2, most)
}

// maker makes objects. Values of different fields differ, so that one is recognized at the other version.
type maker struct {
	crd, kind  string
	namespaced bool
	// all makes values for all fields, and not only for required ones.
	all bool
	// next has the fields around the one that is set, each with the one in it.
	next map[*field]*field
	only *field
	form int
}

// object returns an object with all required fields, and with the given one in one of its forms. It is nil if
// no value is known that the schema of the field allows.
func (m *maker) object(root, only *field, form int) []byte {
	m.next, m.only, m.form = map[*field]*field{}, only, form
	for f := only; f != nil && f.parent != nil; f = f.parent {
		m.next[f.parent] = f
	}
	made, found := m.value(root)
	object, isObject := made.(map[string]any)
	if !isObject || only != nil && !found {
		return nil
	}
	metadata := map[string]any{"name": "conversion-probe", "uid": "00000000-0000-0000-0000-000000000001"}
	if m.namespaced {
		metadata["namespace"] = "conversion-probe"
	}
	object["apiVersion"], object["kind"], object["metadata"] = m.crd, m.kind, metadata
	return preserved.Encode(object)
}

// value returns a value for a field, and whether the field that is set has a value in it.
func (m *maker) value(f *field) (value any, found bool) {
	switch {
	case f.kind == "object" && f.children != nil:
		return m.members(f)
	case f.children[conversion.Each] != nil && f.kind == "array":
		if !m.wanted(f) && (f.schema.MinItems == nil || *f.schema.MinItems == 0) {
			return []any{}, false
		}
		element, found := m.value(f.children[conversion.Each])
		return []any{element}, found || element != nil && m.only == nil
	case f.children[conversion.Each] != nil:
		if !m.wanted(f) {
			return map[string]any{}, false
		}
		element, found := m.value(f.children[conversion.Each])
		return map[string]any{"probe": element}, found || element != nil && m.only == nil
	}
	form := 0
	if m.all || f == m.only {
		form = m.form
	}
	value = m.scalar(f, form)
	return value, value != nil && (f == m.only || m.all)
}

// wanted reports whether a field has a value besides required ones.
func (m *maker) wanted(f *field) bool { return m.all || m.next[f] != nil || f == m.only }

func (m *maker) members(f *field) (any, bool) {
	names := slices.Clone(f.schema.Required)
	if m.next[f] != nil {
		names = append(names, m.next[f].name())
	}
	if m.all {
		names = slices.Collect(maps.Keys(f.children))
	}
	object, found := map[string]any{}, false
	for _, name := range names {
		if child := f.children[name]; child != nil {
			value, inside := m.value(child)
			if value != nil {
				object[name] = value
			}
			found = found || inside
		}
	}
	return object, found
}

// scalar returns a value without fields of its own, nil if none is known that the schema allows. The form 0 is
// the same each time.
func (m *maker) scalar(f *field, form int) any {
	n := number(f, form)
	if len(f.schema.Enum) > 0 {
		return json.RawMessage(f.schema.Enum[max(form-1, 0)%len(f.schema.Enum)].Raw)
	}
	switch f.kind {
	case "boolean":
		return form != 2
	case "integer":
		return integerIn(f.schema, n)
	case "number":
		return json.Number(fmt.Sprintf("%d.5", n))
	case kindIntOrString:
		if form == 2 {
			return fmt.Sprintf("%d%%", n%100)
		}
		return n
	case "string":
		return textIn(f.schema, n, form)
	case "array":
		if elements := f.schema.Items; elements != nil && elements.Schema != nil {
			element := &field{schema: elements.Schema, kind: kindOf(elements.Schema), path: f.path}
			if value := m.scalar(element, form); value != nil {
				return []any{value}
			}
		}
		return nil
	case kindMap:
		element := &field{schema: f.schema.AdditionalProperties.Schema, kind: kindOf(f.schema.AdditionalProperties.Schema), path: f.path}
		if value := m.scalar(element, form); value != nil {
			return map[string]any{"probe": value}
		}
		return nil
	case "object":
		return map[string]any{}
	}
	if f.schema.XEmbeddedResource {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("p%d", n)}}
	}
	if f.schema.XPreserveUnknownFields != nil && form != 2 {
		return map[string]any{"probe": fmt.Sprintf("p%d", n)}
	}
	return fmt.Sprintf("p%d", n)
}

// number returns a number that hardly another field or form has.
func number(f *field, form int) int64 {
	hash := uint32(2166136261)
	for _, c := range []byte(f.String()) {
		hash = (hash ^ uint32(c)) * 16777619
	}
	return 1000 + int64(hash%40000)*8 + int64(form)
}

func integerIn(s *props, n int64) any {
	least, most := int64(0), int64(1<<31-1)
	if s.Minimum != nil {
		least = int64(*s.Minimum)
		if s.ExclusiveMinimum {
			least++
		}
	}
	if s.Maximum != nil {
		most = int64(*s.Maximum)
		if s.ExclusiveMaximum {
			most--
		}
	}
	if most < least {
		return nil
	}
	if n < least || n > most {
		n = least + n%(most-least+1)
	}
	if s.MultipleOf != nil && *s.MultipleOf >= 1 {
		n -= n % int64(*s.MultipleOf)
	}
	return n
}

// textIn returns a text in one of the forms that rules read, if the schema allows it.
func textIn(s *props, n int64, form int) any {
	candidates := []string{
		fmt.Sprintf("p%d", n), fmt.Sprintf("p%d", n), fmt.Sprintf("%d", n), fmt.Sprintf("%dh%dm%ds", 1+n%20, 1+n%59, 1+n/20%59), fmt.Sprintf("%dMi", n),
		fmt.Sprintf("q%d", n), fmt.Sprintf("%d.5", n), fmt.Sprintf("p%d.example.com:%d", n, 1000+n%9000), fmt.Sprintf("%dms", n),
	}
	switch s.Format {
	case "date-time":
		return fmt.Sprintf("20%02d-%02d-%02dT0%d:00:00Z", 10+n%80, 1+n/80%12, 1+n/960%28, form%10)
	case "date":
		return fmt.Sprintf("20%02d-%02d-%02d", 10+n%80, 1+n/80%12, 1+n/960%28)
	case "duration":
		return candidates[3]
	case "byte":
		return fmt.Sprintf("cHJv%04d", n%10000)
	case "uuid":
		return fmt.Sprintf("00000000-0000-0000-0000-%012d", n)
	case "ipv4":
		return fmt.Sprintf("10.%d.%d.%d", n/65536%256, n/256%256, n%256)
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", n%65536)
	case "cidr":
		return fmt.Sprintf("10.%d.%d.0/24", n/256%256, n%256)
	case "uri":
		return fmt.Sprintf("https://p%d.example.com", n)
	case "email":
		return fmt.Sprintf("p%d@example.com", n)
	}
	allowed := func(text string) bool {
		if s.MaxLength != nil && int64(len(text)) > *s.MaxLength || s.MinLength != nil && int64(len(text)) < *s.MinLength {
			return false
		}
		if s.Pattern == "" {
			return true
		}
		pattern, err := regexp.Compile(s.Pattern)
		return err == nil && pattern.MatchString(text)
	}
	if text := candidates[form%len(candidates)]; allowed(text) {
		return text
	}
	// The second form of a strict field is another value in the notation that it allows.
	candidates = append(candidates, fmt.Sprintf("p%d/q", n), fmt.Sprintf("P%d", n), strings.Map(letterOf, fmt.Sprint(n)), fmt.Sprintf("%ds", n),
		fmt.Sprintf("%dm", n), fmt.Sprintf("%dGi", n%100), fmt.Sprintf("%d%%", n%100), fmt.Sprintf("p%d.example.com/v1", n), fmt.Sprintf("v%d", n%9+1), fmt.Sprintf("0 %d * * *", n%24))
	candidates = append(candidates, matching(s.Pattern, n))
	for _, text := range candidates {
		if allowed(text) {
			return text
		}
	}
	return nil
}

// matching returns a text that a pattern allows, with the digits of n where it allows digits. It may be wrong.
func matching(pattern string, n int64) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	m := matcher{digits: fmt.Sprint(n)}
	m.write(parsed.Simplify())
	return m.text.String()
}

// matcher writes a text for a regular expression.
type matcher struct {
	text   strings.Builder
	digits string
}

// maxMatch bounds the text for a pattern.
const maxMatch = 300

func (m *matcher) write(re *syntax.Regexp) {
	if m.text.Len() > maxMatch {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		m.text.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.text.WriteRune(m.oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.text.WriteByte('x')
	case syntax.OpAlternate:
		m.write(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest: // nothing, which is shorter
	default: // a group, one or more, or a concatenation
		for _, sub := range re.Sub {
			m.write(sub)
		}
	}
}

// oneOf returns a rune of a class, the next digit if it has digits.
func (m *matcher) oneOf(class []rune) rune {
	for i := 0; i+1 < len(class) && len(m.digits) > 0; i += 2 {
		digit := rune(m.digits[0])
		if class[i] <= digit && digit <= class[i+1] {
			m.digits = m.digits[1:] + m.digits[:1]
			return digit
		}
	}
	if len(class) == 0 {
		return 'x'
	}
	return class[0]
}

func letterOf(digit rune) rune { return 'a' + digit - '0' }
