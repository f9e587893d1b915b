// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const samplePage = "# A `page` and more\n\n" +
	"See [that](other.md#part).\n\n" +
	"```console play\n" +
	"$ cat > file <<'EOF'\n" +
	"one\n" +
	"$ two\n" +
	"EOF\n" +
	"$ echo a \\\n" +
	"  b\n" +
	"a b\n" +
	"$ cat kept.txt file\n" +
	"...\n" +
	"$ two\n" +
	"$ false && true\n" +
	"```\n\n" +
	"# A page and more\n\n" +
	"```yaml file=kept.txt\n" +
	"kept: 12s\n" +
	"```\n"

func TestParse(t *testing.T) {
	page, err := parse(samplePage)
	expect.NoError(t, err)
	expect.Equal(t, "anchors", map[string]bool{"a-page-and-more": true, "a-page-and-more-1": true}, page.Anchors())
	expect.Equal(t, "links", []Mention{{"other.md#part", 3}}, page.Links())
	expect.Equal(t, "code", []Mention{{"page", 1}}, page.CodeSpans())
	want := []Block{
		{Language: "console", Info: []string{"play"}, Line: 5, Text: page.Blocks[0].Text, Heading: "A `page` and more"},
		{Language: "yaml", Info: []string{"file=kept.txt"}, Line: 21, Text: "kept: 12s\n", Heading: "A page and more"},
	}
	expect.Equal(t, "blocks", want, page.Blocks)
	expect.Equal(t, "the second section", &Page{Blocks: want[1:]}, page.Section("A page and more"))
	commands := []Command{
		{Text: "cat > file <<'EOF'\none\n$ two\nEOF\n"},
		{Text: "echo a \\\n  b\n", Answer: "a b\n"},
		{Text: "cat kept.txt file\n", Answer: "...\n"},
		{Text: "two\n"},
		{Text: "false && true\n"},
	}
	expect.Equal(t, "commands", commands, page.Blocks[0].Commands())
	_, err = parse("```sh\nno end\n")
	expect.Equal(t, "a block without an end is refused", true, err != nil)
}

func TestCommandsWithoutAPrompt(t *testing.T) {
	block := Block{Language: "sh", Text: "one \\\n  more\n\n  cat <<EOF\nx\nEOF\ntwo\n"}
	want := []Command{{Text: "one \\\n  more\n"}, {Text: "  cat <<EOF\nx\nEOF\n"}, {Text: "two\n"}}
	expect.Equal(t, "commands", want, block.Commands())
	expect.Equal(t, "commands of YAML", nil, (Block{Language: "yaml", Text: "a: b\n"}).Commands())
}

func TestSection(t *testing.T) {
	page, err := parse("# One\n\n```sh play\na\n```\n\n```sh play=two\nb\n```\n\n# Two\n\n```sh play=two\nc\n```\n")
	expect.NoError(t, err)
	for name, want := range map[string]string{"One": "a\n", "two": "b\nc\n", "Two": ""} {
		got := ""
		for _, block := range page.Section(name).Blocks {
			got += block.Text
		}
		expect.Equal(t, "under "+name, want, got)
	}
}

func TestAnswers(t *testing.T) {
	const shown = "NAME   AGE    HASH\na  12s  334e1b2339e89bf2\n...\nrun 9bed4684 at 2026-01-01T00:00:00Z\n"
	for answer, want := range map[string]bool{
		"NAME AGE HASH\na 3m9s 0123456789abcdef\nrun 01234567 at 2026-12-31T23:59:59Z\n":         true,
		"NAME AGE HASH\na 2d4h 0123456789abcdef\nb\nc\nrun 01234567 at 2026-12-31T23:59:59Z\n\n": true,
		"NAME AGE HASH\na 3m9s 0123456789abcdef\nrun 01234567 at 2027-01-01T05:29:59.5+05:30\n":  true,
		"NAME AGE HASH\nb 3m9s 0123456789abcdef\nrun 01234567 at 2026-12-31T23:59:59Z\n":         false,
		"NAME AGE HASH\na 3m9s 0123456789abcdef\nrun 01234567\n":                                 false,
		"NAME AGE HASH\na 3m9s 0123456789abcdef\n":                                               false,
		"": false,
	} {
		expect.Equal(t, "it is the answer: "+answer, want, Answers(shown, answer))
	}
}

func TestMasks(t *testing.T) {
	const shown = "pod a-d884ab8c-685d86c95f-sz2gf until 2027-02-20 (in 89d), its record a-migrate-27ff5cb5"
	for answer, want := range map[string]bool{
		"pod a-d884ab8c-7c9f4b5d6-x7k2p until 2030-01-01 (in 7d), its record a-migrate-01234567": true,
		"pod a-d884ab8c-7c9f4b5d6-x7k2p until never, its record a-migrate-01234567":              false,
		"pod a-d884ab8d-7c9f4b5d6-x7k2p until 2030-01-01 (in 7d), its record a-migrate-01234567": false,
	} {
		expect.Equal(t, "it is the answer: "+answer, want, Answers(shown, answer))
	}
}

func TestPartsOfLines(t *testing.T) {
	for shown, want := range map[string]bool{
		"Error: … failed: … refused": true, "… refused": true, "Error: …": true, "Error: a failed: b refused": true, "…": true,
		"… failed: … a …": false, "Error: … broken … refused": false, "… accepted": false, "Error": false,
	} {
		expect.Equal(t, shown, want, Answers(shown, "Error: a failed: b refused"))
	}
	expect.Equal(t, "one text is at the beginning and at the end", false, Answers("aba … aba", "aba"))
}

func tooLittle(_, answer string) error {
	if answer == "nothing\n" {
		return errors.New("that is too little")
	}
	return nil
}

func TestPlay(t *testing.T) {
	cases := map[string]struct{ page, err string }{
		"files, environment, answers": {page: "```yaml file=a.txt\nx\n```\n```console play\n$ cat a.txt\nx\n$ echo $MINE\n1\n```\n"},
		"a failure that is shown":     {page: "```console play\n$ echo no >&2; exit 3\nno\n```\n"},
		"a failure that is not":       {page: "```console play\n$ echo no >&2; exit 3\n```\n", err: "exit status 3\nno"},
		"another answer":              {page: "```console play\n$ echo no\nyes\n```\n", err: "echo no\nshould answer\nyes\n\nand answers\nno\n"},
		"a name that is exchanged":    {page: "```console play\n$ test ours = theirs && echo theirs\nours\n```\n"},
		"a command without a prompt":  {page: "```sh play\nfalse\n```\n", err: "exit status 1"},
		"an answer that is judged":    {page: "```sh play\necho nothing\n```\n", err: "echo nothing\nthat is too little\nnothing"},
		"a block that is not played":  {page: "```sh play=it\ntrue\n```\n```console\n$ false\n```\n"},
		"a pod that is gone once":     {page: "```sh play\ntest -e again || { touch again; echo 'Error from server (NotFound): pods \"a\" not found'; exit 1; }\n```\n"},
		"a pod that is gone":          {page: "```sh play\necho 'Error from server (NotFound): pods \"a\" not found'; exit 1\n```\n", err: "exit status 1"},
		"a line that is logged":       {page: "```console play\n$ echo 'W1129 10:00:00.000000  1 reflector.go:500] late' >&2; echo yes\nyes\n```\n"},
		"nothing to play":             {page: "```console\n$ false\n```\n", err: "has no command to play"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			page, err := parse(c.page)
			expect.NoError(t, err)
			out := &bytes.Buffer{}
			player := &Player{Folder: t.TempDir(), Environment: []string{"MINE=1"}, Out: out, Judge: tooLittle, Names: strings.NewReplacer("ours", "theirs")}
			err = player.Play(t.Context(), page)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q\n%s", err, c.err, out)
			}
		})
	}
}
