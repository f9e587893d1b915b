// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/cli/converters"
	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// draftOptions are the flags of the draft command.
type draftOptions struct {
	config       *genericclioptions.ConfigFlags
	output       output
	files        []string
	from, to     string
	pairs        []string
	moves        []string
	probe        string
	probeWebhook bool
	authority    string
	serverName   string
	timeout      time.Duration
	perRequest   time.Duration
}

func newDraftCommand() *cobra.Command {
	options := draftOptions{}
	command := &cobra.Command{
		Use:   "draft [-f FILE] [CUSTOMRESOURCEDEFINITION]",
		Short: "Draft a policy from schemas, from objects at both versions, or from a converter",
		Long: `Draft a policy that converts between two versions of a CustomResourceDefinition,
which the command reads from files (-f), or by its name from the cluster.

From the schemas alone, the command compares names, types, descriptions and values.
It drafts a rule only if no other one is nearly as likely. Such a rule may be wrong, and
is marked as not confirmed.

With --pairs, objects that were read at both versions confirm rules or refute them,
and show rules that names do not. Two objects with the same namespace and name, one
at each version, are a pair.

With --probe, the command asks an existing conversion webhook. It sends objects that
it makes up from the schemas, changes one field after the other, and tests each rule
against the answers. The webhook gets at most 3,000 requests of at most 100 objects.
Only use a converter that has no effects besides its answers.

With --probe-webhook, it asks the conversion webhook that the
CustomResourceDefinition names in the cluster: a URL, or a ready pod of a Service,
by a port-forward. It verifies the certificate as API servers do. For a Service it
needs the rights to get services, to list endpointslices, and to create
pods/portforward.

A field without a rule is copied if both versions have it, and otherwise preserved,
so a missing rule loses nothing. The command never drafts a drop or cel rule, nor
one for labels or annotations. Comments in the policy have the evidence for each
rule, the rivals, and what is open. Test the policy with verify before you apply it.

Exit codes:
  0  the policy is drafted, and nothing is open
  1  the policy is drafted, and something is open: a rule is not confirmed, a field is
     ambiguous, both versions have fields in an object that the other one lacks, or
     the policy converts in another way than was observed
  2  no policy could be drafted: a flag is wrong, a file cannot be read, a schema is
     not valid, or the converter does not answer`,
		Example: `  conversion-operator draft -f crd.yaml
  conversion-operator draft -f crd.yaml --from v1beta1 --to v1 -o json
  conversion-operator draft crontabs.example.com`,
	}
	options.config = clusterFlags(command)
	command.ValidArgsFunction = firstArgument(namesIn(options.config, definitionKind))
	options.output.add(command, formYAML, formJSON)
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of the CustomResourceDefinition, - for stdin; can be given several times; default that of the cluster")
	flags.StringVar(&options.from, "from", "", "version of the spoke; default the other version, if there are two")
	flags.StringVar(&options.to, "to", "", "version of the hub; default the version that clients prefer, for example v1 to v1beta1")
	flags.StringArrayVar(&options.pairs, "pairs", nil, "file or directory of objects at both versions; can be given several times")
	flags.StringArrayVar(&options.moves, "move", nil, "hint that two fields correspond, for example .spec.image=.spec.container.image; can be given several times")
	options.addConverterFlags(flags)
	return forUsers(command, cobra.MaximumNArgs(1), func(command *cobra.Command, args []string) error {
		name := strings.Join(args, "")
		if err := options.validate(name); err != nil {
			return err
		}
		return options.run(command, name)
	})
}

// addConverterFlags adds the flags for the converter to ask.
func (o *draftOptions) addConverterFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.probe, "probe", "", "URL of a conversion webhook to ask: https, or http on localhost")
	flags.BoolVar(&o.probeWebhook, "probe-webhook", false, "ask the conversion webhook that the CustomResourceDefinition of the cluster names")
	flags.StringVar(&o.authority, "probe-certificate-authority", "", "with --probe: file of the certificate authority of the webhook; default those of the system")
	flags.StringVar(&o.serverName, "probe-server-name", "", "with --probe: name that the certificate of the webhook must be valid for; default the host of the URL")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "with --probe or --probe-webhook: time for all requests")
	flags.DurationVar(&o.perRequest, "timeout-per-request", 10*time.Second, "with --probe or --probe-webhook: time for one request")
}

func (o *draftOptions) validate(name string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case len(o.files) == 0 && name == "":
		return errors.New("which CustomResourceDefinition? Pass its file with -f, or its name in the cluster as the argument")
	case o.probe != "" && o.probeWebhook:
		return errors.New("--probe and --probe-webhook name two converters: use one of them")
	case slices.Contains(o.files, manifest.Stdin) && slices.Contains(o.pairs, manifest.Stdin):
		return errors.New("only one of -f and --pairs can read stdin")
	case (o.authority != "" || o.serverName != "") && o.probe == "":
		return errors.New("--probe-certificate-authority and --probe-server-name are for a converter with a URL: add --probe")
	case o.timeout <= 0 || o.perRequest <= 0:
		return errors.New("--timeout and --timeout-per-request must be positive")
	}
	return nil
}

func (o *draftOptions) run(command *cobra.Command, name string) error {
	ctx, stderr := command.Context(), command.ErrOrStderr()
	crd, err := o.definition(ctx, name, stdinOf(command))
	if err != nil {
		return err
	}
	input := draft.Input{CRD: crd, Spoke: o.from, Hub: o.to}
	if err := chooseVersions(&input); err != nil {
		return err
	}
	for _, move := range o.moves {
		from, to, found := strings.Cut(move, "=")
		if !found {
			return fmt.Errorf("--move must be two paths, for example .spec.image=.spec.container.image, is %q", move)
		}
		input.Hints = append(input.Hints, [2]string{from, to})
	}
	if input.Pairs, err = o.readPairs(&input, stdinOf(command), stderr); err != nil {
		return err
	}
	if o.probe != "" || o.probeWebhook {
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		stop, err := o.ask(ctx, &input, stderr)
		if err != nil {
			return err
		}
		defer stop()
	}
	found, err := draft.Make(input)
	if err != nil {
		return fmt.Errorf("%s: %w", crd.Name, err)
	}
	if err := o.write(command.OutOrStdout(), found); err != nil {
		return err
	}
	if found.Pairs > 0 {
		fmt.Fprintf(stderr, "pairs that the policy reproduces: %d of %d\n", found.Reproduced, found.Pairs)
	}
	fmt.Fprintf(stderr, "rules: %d, of which not confirmed: %d, ambiguous fields: %d, unpaired fields: %d, fields that convert in another way than was observed: %d\n",
		len(found.Rules), found.Unconfirmed(), len(found.Ambiguous), len(found.Unpaired), len(found.Differences))
	fmt.Fprintf(stderr, "test the policy: %s verify --policy POLICY %s\n", calledAs(command), o.objectsForVerify())
	if found.IsAmbiguous() {
		return &exitError{exitFound, errors.New("something is open; see the comments in the policy")}
	}
	return nil
}

// objectsForVerify returns flags for verify that read the same definition: its --crd is one file.
func (o *draftOptions) objectsForVerify() string {
	if len(o.files) == 0 {
		return "--live"
	}
	file := "CRD"
	if info, err := os.Stat(o.files[0]); len(o.files) == 1 && err == nil && !info.IsDir() {
		file = o.files[0]
	}
	return "--crd " + file + " -f OBJECTS"
}

func (o *draftOptions) write(w io.Writer, found *draft.Draft) error {
	if o.output.form == formJSON {
		return writeJSON(w, found)
	}
	return found.WriteText(w)
}

// definition reads the CustomResourceDefinition of the name, or the only one of the files.
func (o *draftOptions) definition(ctx context.Context, name string, stdin io.Reader) (*apiextensionsv1.CustomResourceDefinition, error) {
	if len(o.files) == 0 {
		return o.definitionInCluster(ctx, name)
	}
	read, err := readRevision(ctx, o.files, stdin)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(read.crds))
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no CustomResourceDefinition", sourcesOf(o.files))
	case name != "" && read.crds[name] == nil:
		return nil, fmt.Errorf("%s has no CustomResourceDefinition %s, only: %s", sourcesOf(o.files), name, strings.Join(names, ", "))
	case name != "":
		return read.crds[name], nil
	case len(names) != 1:
		return nil, fmt.Errorf("which CustomResourceDefinition of %s? Name one as the argument: %s", sourcesOf(o.files), strings.Join(names, ", "))
	}
	return read.crds[names[0]], nil
}

func (o *draftOptions) definitionInCluster(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	api, err := connect(o.config)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition %s of the cluster: %w", name, err)
	}
	return crd, nil
}

// chooseVersions fills in the versions that no flag names.
func chooseVersions(input *draft.Input) error {
	var names []string
	for _, version := range crds.ByPriority(input.CRD) {
		names = append(names, version.Name)
	}
	if input.Hub == "" {
		names := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == input.Spoke })
		if len(names) > 0 {
			input.Hub = names[0]
		}
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == input.Hub })
	if input.Spoke == "" && len(others) == 1 {
		input.Spoke = others[0]
	}
	switch {
	case len(names) < 2:
		return fmt.Errorf("%s has only the version %s: there is nothing to convert", input.CRD.Name, strings.Join(names, ", "))
	case input.Spoke == "":
		return fmt.Errorf("--from must be one of %s", strings.Join(others, ", "))
	case !slices.Contains(names, input.Hub):
		return fmt.Errorf("--to must be one of %s, is %q", strings.Join(names, ", "), input.Hub)
	case !slices.Contains(others, input.Spoke):
		return fmt.Errorf("--from must be one of %s, is %q", strings.Join(others, ", "), input.Spoke)
	}
	return nil
}

// readPairs reads the objects at both versions. Objects of other kinds or versions, and those at one version
// only, do not count.
func (o *draftOptions) readPairs(input *draft.Input, stdin io.Reader, stderr io.Writer) ([]draft.Pair, error) {
	if len(o.pairs) == 0 {
		return nil, nil
	}
	objects, err := readObjects(o.pairs, stdin)
	if err != nil {
		return nil, err
	}
	found, names, skipped := map[string]*draft.Pair{}, []string{}, 0
	for _, object := range objects {
		group, version, _ := strings.Cut(object.APIVersion, "/")
		if group != input.CRD.Spec.Group || object.Kind != input.CRD.Spec.Names.Kind || version != input.Spoke && version != input.Hub {
			skipped++
			continue
		}
		if found[object.FullName()] == nil {
			found[object.FullName()] = &draft.Pair{}
			names = append(names, object.FullName())
		}
		side := &found[object.FullName()].Spoke
		if version == input.Hub {
			side = &found[object.FullName()].Hub
		}
		if *side != nil {
			return nil, fmt.Errorf("%s: there is another object %s at %s: leave one out", object, object.FullName(), version)
		}
		*side = object.JSON
	}
	var pairs []draft.Pair
	for _, name := range names {
		if pair := found[name]; pair.Spoke != nil && pair.Hub != nil {
			pairs = append(pairs, *pair)
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%s: no object of the kind %s is there at %s and at %s: get objects with kubectl at both versions, for example kubectl get %s.%s.%s -A -o yaml",
			sourcesOf(o.pairs), input.CRD.Spec.Names.Kind, input.Spoke, input.Hub, input.CRD.Spec.Names.Plural, input.Spoke, input.CRD.Spec.Group)
	}
	if len(pairs) > draft.MaxPairs {
		fmt.Fprintf(stderr, "only the first %d of %d pairs count\n", draft.MaxPairs, len(pairs))
	}
	fmt.Fprintf(stderr, "pairs: %d, objects at one version only: %d, of another kind or version: %d\n", len(pairs), len(found)-len(pairs), skipped)
	return pairs, nil
}

// webhook returns where to ask: at a URL, or where the CustomResourceDefinition of the cluster names a conversion webhook.
func (o *draftOptions) webhook(ctx context.Context, crd string) (*converters.Webhook, error) {
	if !o.probeWebhook {
		at := &converters.Webhook{Name: o.probe, URL: o.probe, ServerName: o.serverName}
		var err error
		if o.authority != "" {
			at.CABundle, err = os.ReadFile(o.authority)
		}
		return at, err
	}
	definition, err := o.definitionInCluster(ctx, crd)
	if err != nil {
		return nil, err
	}
	config, err := reach(o.config)
	if err != nil {
		return nil, err
	}
	return converters.Reach(ctx, config, definition)
}

// ask makes the input ask the converter, until ctx ends.
func (o *draftOptions) ask(ctx context.Context, input *draft.Input, stderr io.Writer) (stop func(), err error) {
	webhook, err := o.webhook(ctx, input.CRD.Name)
	if err != nil {
		return nil, err
	}
	converter, err := probe.NewConverter(webhook.URL, webhook.CABundle, webhook.ServerName)
	if err != nil {
		webhook.Close()
		what := "--probe"
		if o.probeWebhook {
			what = "the conversion webhook of " + input.CRD.Name
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	shown := &progress{to: stderr, interactive: isTerminal(stderr), what: "requests"}
	input.Progress = func(done, total int) { shown.page(int64(done), int64(total-done)) }
	input.Convert = func(version string, objects [][]byte) ([][]byte, error) {
		one, cancel := context.WithTimeout(ctx, o.perRequest)
		defer cancel()
		converted, err := converter.Convert(one, input.CRD.Spec.Group+"/"+version, objects)
		switch {
		case err == nil:
			return converted, nil
		case probe.IsRefusal(err):
			return nil, fmt.Errorf("%w: %w", draft.ErrRefused, err)
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, fmt.Errorf("ask %s: interrupted", webhook.Name)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("ask %s: not ready after %s: raise --timeout, or leave out --probe", webhook.Name, o.timeout)
		}
		if problem := webhook.Problem(); problem != nil {
			err = fmt.Errorf("%w (the port-forward: %w)", err, problem)
		}
		return nil, fmt.Errorf("ask %s: %w", webhook.Name, err)
	}
	return func() {
		shown.clear()
		converter.Close()
		webhook.Close()
	}, nil
}
