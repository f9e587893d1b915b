//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestSymptoms compares the messages of a real API server with the troubleshooting page. Each block
// with a symptom runs on a CronTab with the trouble of that name, which has its own group and
// converter.
func TestSymptoms(t *testing.T) {
	t.Parallel()
	page, err := Read(filepath.Join("..", "..", ".."), Folder+"/troubleshooting.md")
	expect.NoError(t, err)
	symptoms := map[string]Block{}
	for _, block := range page.Blocks {
		if name := block.symptom(); name != "" {
			symptoms[name] = block
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(troubles)), slices.Sorted(maps.Keys(symptoms))); diff != "" {
		t.Fatalf("symptoms that the page has (-that are made here +page):\n%s", diff)
	}
	cluster := start(t)
	cluster.install(t, slices.Sorted(maps.Keys(troubles)))
	for _, block := range page.Blocks { // the one that takes half a minute is among the first
		trouble, found := troubles[block.symptom()]
		if !found {
			continue
		}
		t.Run(block.symptom(), func(t *testing.T) {
			t.Parallel()
			c := cluster.newCase(t, block.symptom())
			trouble(t, c)
			c.play(t, block)
		})
	}
}

// cluster is an API server, and the tools to call it.
type cluster struct {
	kubectl, kubeconfig, samples string
	discovery                    discovery.DiscoveryInterface
	// wording returns a text of the page in the words of this version of Kubernetes.
	wording func(string) string
}

func start(t *testing.T) *cluster {
	t.Helper()
	// Without a watch cache, clients see every error of a conversion.
	server := testenv.For(t, testenv.Options{NoWatchCache: true, StorageMigrations: true})
	samples, err := filepath.Abs(filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport"))
	expect.NoError(t, err)
	return &cluster{kubectl: os.Getenv("KUBEBUILDER_ASSETS"), kubeconfig: server.KubeconfigFile(t), samples: samples, discovery: discovery.NewDiscoveryClientForConfigOrDie(server.Kubeconfig), wording: wordingOf(t, server.Kubeconfig)}
}

// install creates a CronTab with both versions in the group of each symptom, and its object local,
// stored at v1beta1.
func (c *cluster) install(t *testing.T, names []string) {
	t.Helper()
	all := c.newCase(t, "")
	var definitions, objects string
	for _, name := range names {
		one := c.newCase(t, name)
		definitions += "---\n" + one.own(one.definition(t))
		objects += "---\n" + one.own(one.object(t))
	}
	expect.NoError(t, os.WriteFile(filepath.Join(all.folder, "definitions.yaml"), []byte(definitions), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(all.folder, "objects.yaml"), []byte(objects), 0o600))
	all.run(t, "kubectl create namespace conversion-system")
	all.run(t, "kubectl apply -f definitions.yaml && "+Established("-f definitions.yaml"))
	all.run(t, "kubectl apply --server-side -f objects.yaml")
}

func (c *cluster) player(t *testing.T, folder string, out *strings.Builder) *Player {
	t.Helper()
	return &Player{Folder: folder, Out: out, Environment: []string{
		"PATH=" + c.kubectl + ":" + os.Getenv("PATH"), "KUBECONFIG=" + c.kubeconfig, "HOME=" + folder}}
}

// symptomCase is the CronTab of one symptom, in its own group.
type symptomCase struct {
	*cluster
	name string
	// group and converter replace example.com and crontab-converter of the page.
	group, converter string
	folder           string
}

func (c *cluster) newCase(t *testing.T, name string) *symptomCase {
	t.Helper()
	return &symptomCase{cluster: c, name: name, group: name + ".example.com", converter: name + "-converter", folder: t.TempDir()}
}

// own returns the page's text with the names of this case.
func (c *symptomCase) own(text string) string {
	return strings.NewReplacer("example.com", c.group, "crontab-converter", c.converter, "shortNames: [ct]", "").Replace(text)
}

// play runs the block's commands.
func (c *symptomCase) play(t *testing.T, block Block) {
	t.Helper()
	for _, command := range block.Commands() {
		c.try(t, command.Text, command.Answer)
	}
}

// try runs a command until its output is as expected.
func (c *symptomCase) try(t *testing.T, command, answer string) {
	t.Helper()
	expect.Success(t, command, func(ctx context.Context) error {
		return c.player(t, c.folder, &strings.Builder{}).do(ctx, Command{Text: c.own(command), Answer: c.own(c.wording(answer))})
	})
}

// run runs a command until it succeeds.
func (c *symptomCase) run(t *testing.T, command string) {
	t.Helper()
	c.try(t, command, "")
}

// file saves a sample, or a text, with the names of this case.
func (c *symptomCase) file(t *testing.T, name, text string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(filepath.Join(c.folder, name), []byte(c.own(text)), 0o600))
}

// definition returns the CronTab with both versions.
func (c *symptomCase) definition(t *testing.T) string { return c.sample(t, "3-crd-both.yaml") }

// object returns an object of v1beta1.
func (c *symptomCase) object(t *testing.T) string {
	first, _, _ := strings.Cut(c.sample(t, "objects.yaml"), "---")
	return first
}

func (c *symptomCase) sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.samples, name))
	expect.NoError(t, err)
	return string(text)
}

// convertBy configures a webhook for the CronTab.
func (c *symptomCase) convertBy(t *testing.T, client string, bundle []byte) {
	t.Helper()
	c.run(t, fmt.Sprintf(`kubectl patch crd crontabs.example.com --type=merge -p '
		{"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {%s, "caBundle": "%s"}}}}}'`,
		client, base64.StdEncoding.EncodeToString(bundle)))
}

// earlier has the words of API servers before a version. The page shows the messages of Kubernetes 1.37.
var earlier = []struct {
	before  string
	text    *regexp.Regexp
	instead string
}{
	// They omit that an object which cannot be converted cannot be decoded.
	{"v1.37", regexp.MustCompile(` \(InternalError\): … conversion webhook`), ": conversion webhook"},
	{"v1.37", regexp.MustCompile(` \(InternalError\): …`), ": …"},
	{"v1.37", regexp.MustCompile(`(?: \(StorageReadError\))?: failed to read one or more \S+ from the storage: StorageError: corrupt object, .*?conversion webhook`), ": conversion webhook"},
	// They show lists and bytes as Go does.
	{"v1.34", regexp.MustCompile(`Invalid value: \["(\w+)"\]`), `Invalid value: []string{"$1"}`},
	{"v1.34", regexp.MustCompile(`Invalid value: "Cg=="`), "Invalid value: []byte{0xa}"},
	{"v1.33", regexp.MustCompile(`missing from spec\.versions; .*`), "must appear in spec.versions"},
}

// wordingOf returns a function that adapts texts of the page to the version of the API server.
func wordingOf(t *testing.T, config *rest.Config) func(string) string {
	t.Helper()
	isEarlier := map[string]bool{}
	for _, change := range earlier {
		isEarlier[change.before] = !testenv.AtLeast(t, config, change.before)
	}
	return func(text string) string {
		for _, change := range earlier {
			if isEarlier[change.before] {
				text = change.text.ReplaceAllString(text, change.instead)
			}
		}
		return text
	}
}
