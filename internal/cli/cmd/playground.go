// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground/server"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// playgroundOptions are the flags of the playground command.
type playgroundOptions struct {
	definitions definitions
	files       []string
	port        uint16
	liveOptions
}

func newPlaygroundCommand() *cobra.Command {
	options := playgroundOptions{}
	command := &cobra.Command{
		Use:   "playground [CUSTOMRESOURCEDEFINITION]",
		Short: "Write a policy in the browser, and see what its rules do while you type",
		Long: `Write a policy in the browser, and see what its rules do while you type.

The command serves a page to browsers on this computer, until you stop it. The page
shows the fields of both versions and the rules between them, your objects at every
version and whether they come back unchanged, and suggests rules. It needs no
internet. Only who has the address that the command prints can use it. Files are
read once, and never written: save the policy from the page.

Without files, the page begins with a sample. With --live, the command reads the
CustomResourceDefinition of the argument from the cluster, with its policy if there
is one, and the page can test the policy on the objects of the cluster. The command
only reads the cluster.

Exit codes:
  0  the command was stopped
  2  the page could not be served: a flag is wrong, or a file or the cluster cannot
     be read`,
		Example: `  conversion-operator playground
  conversion-operator playground --crd crd.yaml -f objects.yaml
  conversion-operator playground crontabs.example.com --live`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times")
	flags.Uint16Var(&options.port, "port", 0, "port of the page on this computer; 0 for any that is free")
	options.addFlags(command, "let the page test the policy on the objects in a cluster")
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *playgroundOptions) validate(args []string) error {
	switch {
	case !o.live && len(args) > 0:
		return errors.New("the argument is a CustomResourceDefinition of a cluster: add --live, or pass a file with --crd")
	case o.live && len(args) == 0 && o.definitions.crd == "":
		return errors.New("which CustomResourceDefinition? Name it as the argument, for example crontabs.example.com, or pass a file with --crd")
	case o.live && len(args) > 0 && o.definitions.crd != "":
		return errors.New("the CustomResourceDefinition is that of the argument, or of --crd: leave out one of them")
	}
	return o.liveOptions.validate(nil)
}

func (o *playgroundOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	name := strings.Join(args, "")
	ctx := command.Context()
	texts, err := o.texts(ctx, name, stdinOf(command))
	if err != nil {
		return err
	}
	live, err := o.cluster(command)
	if err != nil {
		return err
	}
	page, err := server.New(texts, live)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("serve the page: %w: choose another --port", err)
	}
	fmt.Fprintf(command.OutOrStdout(), "The playground is at %s\nStop it with Ctrl-C.\n", page.URL(listener.Addr()))
	return serveUntil(ctx, listener, page)
}

// serveUntil serves until ctx ends, and lets running requests finish for a second.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	served := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if served.Shutdown(ending) != nil {
			_ = served.Close() // a question takes longer
		}
	})
	defer stop()
	if err := served.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// texts reads what the page begins with.
func (o *playgroundOptions) texts(ctx context.Context, name string, stdin io.Reader) (texts playground.Input, err error) {
	if !o.live && o.definitions == (definitions{}) && len(o.files) == 0 {
		return playground.Sample(), nil
	}
	if name != "" {
		if texts, err = o.textsInCluster(ctx, name); err != nil {
			return texts, err
		}
	}
	for _, file := range []struct {
		path string
		into *string
	}{{o.definitions.crd, &texts.CRD}, {o.definitions.policy, &texts.Policy}} {
		if file.path == "" {
			continue
		}
		text, err := os.ReadFile(file.path)
		if err != nil {
			return texts, err
		}
		*file.into = string(text)
	}
	documents, err := manifest.ReadAll(o.files, stdin)
	if err != nil {
		return texts, err
	}
	var objects bytes.Buffer
	err = manifest.Write(&objects, manifest.YAML, documents)
	texts.Objects = objects.String()
	return texts, err
}

// textsInCluster reads a CustomResourceDefinition, and its policy if there is one, without what the cluster adds to them.
func (o *playgroundOptions) textsInCluster(ctx context.Context, name string) (texts playground.Input, err error) {
	api, err := connect(o.config)
	if err != nil {
		return texts, err
	}
	crd, policy := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.ConversionPolicy{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return texts, fmt.Errorf("read CustomResourceDefinition %s of the cluster: %w", name, err)
	}
	if texts.CRD, err = written(crd); err != nil {
		return texts, err
	}
	err = api.Get(ctx, client.ObjectKey{Name: name}, policy)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return texts, nil // the page drafts one
	case err != nil:
		return texts, fmt.Errorf("read ConversionPolicy %s of the cluster: %w", name, err)
	}
	texts.Policy, err = written(policy)
	return texts, err
}

// cluster returns nil without --live.
func (o *playgroundOptions) cluster(command *cobra.Command) (*server.Live, error) {
	if !o.live {
		return nil, nil //nolint:nilnil // there is no cluster, and no error
	}
	config, err := reach(o.config)
	if err != nil {
		return nil, err
	}
	_, objects, err := o.sources(command, nil, true)
	if err != nil {
		return nil, err
	}
	return &server.Live{Name: config.Host, Test: func(
		ctx context.Context, policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition,
	) (*verify.Report, error) {
		return try(ctx, policy, crd, objects)
	}}, nil
}
