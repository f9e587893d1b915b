// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// If a ruleset expects an object there may be a list, whose elements have no names.
func TestListInPlaceOfAnObject(t *testing.T) {
	const text = `{"a":[1,{"b":2}]}`
	root, err := parse([]byte(text), openAll)
	expect.NoError(t, err)
	var paths []Path
	of := holder{slot: newSlot(Path{"a"}, 0), named: setOf([]string{"b"})}
	for i := range fewNames + 1 {
		name := fmt.Sprint("name", i)
		paths = append(paths, Path{name})
		of.fields.set(name, removedField{when: removeAlways})
	}
	var h step
	h.removeOneSided(&of, root, nil)
	if got := string(root.append(nil)); got != text || len(h.preserving) > 0 {
		t.Errorf("%s is left, and %d values are kept; want %s and none", got, len(h.preserving), text)
	}
	a := newName("a")
	expect.Equal(t, "that a list is mistaken for an object with values of rules only", false, root.get(&a).holdsOnlyShared(trieOf(paths, 0)))
}

// Many names are found as few are, whatever their spelling.
func TestByName(t *testing.T) {
	for _, count := range []int{1, fewNames, fewNames + 1, 5 * fewNames} {
		var numbers byName[int]
		for i := range count {
			numbers.set(fmt.Sprint("é", i), -1)
			numbers.set(fmt.Sprint("é", i), i+1)
		}
		for i := range count {
			for _, spelling := range []string{"é%d", `\u00e9%d`} {
				root, err := parse(fmt.Appendf(nil, `{"`+spelling+`":0,"other":0}`, i), openMembers)
				expect.NoError(t, err)
				expect.Equal(t, fmt.Sprintf("number of %s, of %d names", root.first.key, count), i+1, numbers.lookup(root.first))
				expect.Equal(t, fmt.Sprintf("number of one that is not there, of %d names", count), 0, numbers.lookup(root.last)+numbers.get("other"))
			}
		}
	}
}

// Names of the same mark have no spots of their own.
func TestByNameOfNamesThatLookAlike(t *testing.T) {
	for _, names := range [][]string{{"abcxabc", "abcxxabc", "dcba"}, {"abcxabc", "abcyabc"}, {"a", "abcxabc", "abcyabc", "abczabc"}} {
		var numbers byName[int]
		for i, text := range names {
			numbers.set(text, i+1)
		}
		for i, text := range append(names, "abcuabc") {
			root, err := parse([]byte(`{"`+text+`":0}`), openMembers)
			expect.NoError(t, err)
			expect.Equal(t, fmt.Sprintf("number of %s, of %q", text, names), (i+1)%(len(names)+1), numbers.lookup(root.first))
		}
	}
}

// Names may look alike at a glance.
func TestNamesThatLookAlike(t *testing.T) {
	names := []string{"", `"`, "a", "aa", "ab/cd", "ab/ cd", "ab.cd", "abcabc", "abcxabc", "abcyabc", "abcxyabc", "abcd", "dcba", "é", "è"}
	for _, text := range names {
		wanted := newName(text)
		for _, other := range names {
			for _, slash := range []string{"/", `\/`, `\u002f`} {
				quoted := strings.ReplaceAll(string(appendQuoted(nil, other)), "/", slash)
				root, err := parse([]byte(`{`+quoted+`:0}`), openMembers)
				expect.NoError(t, err)
				expect.Equal(t, fmt.Sprintf("that %s is found as %q", quoted, text), text == other, root.get(&wanted) != nil)
			}
		}
	}
}

// TestValid cuts and changes a text at every byte. encoding/json has the same
// grammar, but replaces what is not UTF-8.
func TestValid(t *testing.T) {
	text := []byte(` {"a":[1,-0.5e+3, "eight by" , "é\"\\\u00e9", true,false,null,{},[ ]],"":{"long name of more than a word":[[{"x":0}]]}} `)
	check := func(text []byte) {
		t.Helper()
		err := Valid(text)
		expect.Equal(t, fmt.Sprintf("that %q is valid: %v", text, err), json.Valid(text) && utf8.Valid(text), err == nil)
	}
	check(text)
	for i := range text {
		check(text[:i])
		check(text[i:])
		check(slices.Delete(slices.Clone(text), i, i+1))
		for b := range 256 {
			changed := slices.Clone(text)
			changed[i] = byte(b)
			check(changed)
		}
	}
}

func TestValidDepth(t *testing.T) {
	for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		for depth, valid := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
			text := strings.Repeat(brackets[0], depth) + "0" + strings.Repeat(brackets[1], depth)
			err := Valid([]byte(text))
			expect.Equal(t, fmt.Sprintf("that %d times %s is valid: %v", depth, brackets[0], err), valid, err == nil)
		}
	}
}
