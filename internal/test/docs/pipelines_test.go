// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// repository is a repository with a policy, its CustomResourceDefinition and objects, as the page on pipelines has it.
type repository struct {
	*testing.T
	*Player
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	config, err := filepath.Abs(filepath.Join(root, "config"))
	expect.NoError(t, err)
	player := &Player{Folder: t.TempDir(), Out: &strings.Builder{}, Environment: []string{"PATH=" + binaries(t) + ":" + os.Getenv("PATH")}}
	expect.NoError(t, os.Symlink(config, filepath.Join(player.Folder, "config")))
	r := &repository{t, player}
	r.succeeds("cp config/samples/crontab-hostport/2-policy.yaml policy.yaml && cp config/samples/crontab-hostport/3-crd-both.yaml crd.yaml",
		"mkdir objects && cp config/samples/crontab-hostport/objects.yaml objects")
	return r
}

func (r *repository) succeeds(commands ...string) {
	r.Helper()
	for _, command := range commands {
		expect.NoError(r.T, r.do(r.Context(), Command{Text: command + "\n"}))
	}
}

// exitCode runs a program as a pipeline does, and returns its exit code.
func (r *repository) exitCode(environment []string, program string, args ...string) int {
	r.Helper()
	command := exec.CommandContext(r.Context(), program, args...)
	command.Dir, command.Env = r.Folder, slices.Concat(os.Environ(), r.Environment, environment)
	answer, err := command.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		r.Logf("%s", answer)
		return exit.ExitCode()
	}
	expect.NoError(r.T, err)
	return 0
}

// TestPagesForPipelines runs the commands of pages that need no cluster.
func TestPagesForPipelines(t *testing.T) {
	t.Parallel()
	for _, scene := range []string{"pipelines", "other languages"} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			pages, err := Scene(root, scene)
			expect.NoError(t, err)
			for _, page := range pages {
				expect.NoError(t, r.Play(t.Context(), page))
			}
		})
	}
}

// shown reads a file of the page on pipelines.
func shown(t *testing.T, name string, into any) {
	t.Helper()
	page, err := Read(root, Folder+"/pipelines.md")
	expect.NoError(t, err)
	at := slices.IndexFunc(page.Blocks, func(block Block) bool { return block.File() == name })
	if at < 0 {
		t.Fatalf("the page has no %s", name)
	}
	expect.NoError(t, yaml.Unmarshal([]byte(page.Blocks[at].Text), into))
}

// TestPreCommitHook runs the hook as pre-commit does: with the arguments of the page, if a commit changes a file.
func TestPreCommitHook(t *testing.T) {
	t.Parallel()
	var hooks []struct {
		ID            string   `json:"id"`
		Name          string   `json:"name"`
		Description   string   `json:"description"`
		Language      string   `json:"language"`
		Entry         string   `json:"entry"`
		Types         []string `json:"types_or"`
		PassFilenames *bool    `json:"pass_filenames"`
	}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(read(t, filepath.Join(root, ".pre-commit-hooks.yaml"))), &hooks))
	var config struct {
		Repos []struct {
			Repo  string `json:"repo"`
			Hooks []struct {
				ID    string   `json:"id"`
				Args  []string `json:"args"`
				Files string   `json:"files"`
			} `json:"hooks"`
		} `json:"repos"`
	}
	shown(t, ".pre-commit-config.yaml", &config)
	hook, used := hooks[0], config.Repos[0].Hooks[0]
	expect.Equal(t, "hook, and what pre-commit passes", []any{used.ID, "golang", false, []string{"yaml", "json"}}, []any{hook.ID, hook.Language, *hook.PassFilenames, hook.Types})
	module, _, _ := strings.Cut(strings.TrimPrefix(read(t, filepath.Join(root, "go.mod")), "module "), "\n")
	entry := strings.Fields(hook.Entry)
	expect.Equal(t, "repository, and the program that go install builds", []string{"https://" + module, path.Base(module)}, []string{config.Repos[0].Repo, entry[0]})
	for file, want := range map[string]bool{"policy.yaml": true, "crd.yaml": true, "objects/a.yaml": true, "README.md": false, "a/crd.yaml": false} {
		expect.Equal(t, "it runs for "+file, want, regexp.MustCompile(used.Files).MatchString(file))
	}
	r := newRepository(t)
	run := func() int {
		return r.exitCode(nil, filepath.Join(binaries(t), entry[0]), append(entry[1:], used.Args...)...)
	}
	expect.Equal(t, "exit code", 0, run())
	r.succeeds("sed -i 's/host: .host/host: .hots/' policy.yaml")
	expect.Equal(t, "exit code with a wrong rule", 2, run())
}

// action is what GitHub reads of an action that has steps.
type action struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Inputs      map[string]struct {
		Description string  `json:"description"`
		Required    bool    `json:"required"`
		Default     *string `json:"default"`
	} `json:"inputs"`
	Runs struct {
		Using string `json:"using"`
		Steps []struct {
			Name  string            `json:"name"`
			Uses  string            `json:"uses"`
			With  map[string]string `json:"with"`
			Shell string            `json:"shell"`
			Env   map[string]string `json:"env"`
			Run   string            `json:"run"`
		} `json:"steps"`
	} `json:"runs"`
}

var expressionOf = regexp.MustCompile(`\$\{\{ (\w+)\.(\w+) \}\}`)

// TestAction runs the steps of the action as GitHub does, with the inputs of the page.
func TestAction(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string            `json:"uses"`
				With map[string]string `json:"with"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	shown(t, "workflow.yaml", &workflow)
	used := workflow.Jobs["conversion"].Steps[1]
	folder, version, _ := strings.Cut(strings.TrimPrefix(used.Uses, "conversion-operator/conversion-operator/"), "@")
	expect.Equal(t, "the version is one of a release", true, strings.HasPrefix(version, "v"))
	folder, err := filepath.Abs(filepath.Join(root, folder))
	expect.NoError(t, err)
	var verify action
	expect.NoError(t, yaml.UnmarshalStrict([]byte(read(t, filepath.Join(folder, "action.yml"))), &verify))

	r := newRepository(t)
	r.succeeds("conversion-operator verify --policy policy.yaml --crd crd.yaml -f objects --record golden.yaml", "mkdir temporary",
		"sed 's/{host}:{port}/{port}:{host}/' policy.yaml > changed.yaml")
	for _, test := range []struct {
		policy, summary, sarif string
		code                   int
	}{
		{"policy.yaml", "# crontabs.example.com: nothing is lost\n", `"version": "2.1.0"`, 0},
		{"changed.yaml", "# crontabs.example.com: problems found\n", `"ruleId": "NotAsRecorded"`, 1},
		{"nowhere.yaml", "", "", 2},
	} {
		r.succeeds("rm -f summary.md *.sarif && touch summary.md")
		used.With["policy"] = test.policy
		expect.Equal(t, "exit code with "+test.policy, test.code, r.steps(verify, folder, used.With))
		verify.Runs.Steps = verify.Runs.Steps[len(verify.Runs.Steps)-1:] // the program is built
		expect.Contains(t, "summary with "+test.policy, read(t, filepath.Join(r.Folder, "summary.md")), test.summary)
		found, err := os.ReadFile(filepath.Join(r.Folder, "conversion.sarif"))
		expect.Equal(t, "there are findings with "+test.policy, test.sarif != "", err == nil)
		expect.Contains(t, "findings with "+test.policy, string(found), test.sarif)
	}
}

// steps runs the steps up to the first one that fails, and returns its exit code.
func (r *repository) steps(of action, folder string, inputs map[string]string) int {
	r.Helper()
	for name := range inputs {
		expect.Equal(r.T, "the action has the input "+name, true, of.Inputs[name].Description != "")
	}
	value := func(expression string) string {
		found := expressionOf.FindStringSubmatch(expression)
		input := of.Inputs[found[2]]
		given, isGiven := inputs[found[2]]
		switch {
		case found[1] == "github" && found[2] == "action_path":
			return folder
		case found[1] != "inputs" || !isGiven && input.Default == nil:
			r.Fatalf("%s has no value", expression)
		case !isGiven:
			return *input.Default
		}
		return given
	}
	resolve := func(text string) string { return expressionOf.ReplaceAllStringFunc(text, value) }
	for _, step := range of.Runs.Steps {
		if step.Uses != "" {
			_, err := os.Stat(resolve(step.With["go-version-file"]))
			expect.NoError(r.T, err)
			continue
		}
		environment := []string{"GITHUB_ACTION_PATH=" + folder, "RUNNER_TEMP=" + filepath.Join(r.Folder, "temporary"), "GITHUB_STEP_SUMMARY=" + filepath.Join(r.Folder, "summary.md")}
		for name, text := range step.Env {
			environment = append(environment, name+"="+resolve(text))
		}
		expect.Equal(r.T, "shell", "bash", step.Shell)
		if code := r.exitCode(environment, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run); code != 0 {
			return code
		}
	}
	return 0
}
