// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv starts API servers for integration tests: a real kube-apiserver with etcd, and
// without controllers, so that only the test acts.
package testenv

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Options configure an API server. The zero value starts an empty one.
type Options struct {
	// CRDs are files and folders with CustomResourceDefinitions to create. Relative paths start at
	// the root of the repository. OperatorCRDs has those of the operator.
	CRDs []string
	// NoWatchCache makes the API server read from etcd, and convert, for every request.
	NoWatchCache bool
	// StorageMigrations enables StorageVersionMigration, which Kubernetes before 1.37 disables by
	// default.
	StorageMigrations bool
	// Durable keeps the data of etcd and the certificates of the API server until the end, for Checkpoint and
	// RestartAPIServer.
	Durable bool
	// Arguments are additional flags of kube-apiserver, and EtcdArguments those of etcd.
	Arguments, EtcdArguments map[string]string
}

// OperatorCRDs is the folder with the CustomResourceDefinition of ConversionPolicy.
const OperatorCRDs = "config/crd/bases"

// startTimeout bounds how long another API server may take to start on a busy machine, and stopTimeout
// how long etcd and an API server may take to stop.
const (
	startTimeout = 4 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Server is a running API server.
type Server struct {
	*envtest.Environment
	// Kubeconfig has administrator rights, no client-side rate limit, and ignores warnings.
	Kubeconfig *rest.Config
	// Client uses Kubeconfig, without a cache.
	Client client.WithWatch
	// Etcd reads and writes the stored objects.
	Etcd etcd.Client
	// durable are folders to remove at the end.
	durable []string
}

// Start starts an API server. The caller stops it with Stop.
func Start(options Options) (*Server, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run make integration")
	}
	environment, err := options.environment()
	if err != nil {
		return nil, err
	}
	s := &Server{Environment: environment}
	if options.Durable {
		s.durable = []string{environment.ControlPlane.Etcd.DataDir, environment.ControlPlane.APIServer.CertDir}
	}
	if s.Kubeconfig, err = withLessGarbageCollection(environment.Start); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.Kubeconfig.QPS, s.Kubeconfig.WarningHandler = -1, rest.NoWarnings{}
	if s.Client, err = client.NewWithWatch(s.Kubeconfig, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.Etcd = etcd.Client(environment.ControlPlane.Etcd.URL.String())
	return s, nil
}

// withLessGarbageCollection starts programs that collect garbage rarely while they have less than a gigabyte: that is a
// fifth of the work of an API server in a test.
func withLessGarbageCollection(start func() (*rest.Config, error)) (*rest.Config, error) {
	for name, value := range map[string]string{"GOGC": "400", "GOMEMLIMIT": "1GiB"} {
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, value) // envtest passes on the environment
			defer func() { _ = os.Unsetenv(name) }()
		}
	}
	return start()
}

// Stop stops the API server and etcd.
func (s *Server) Stop() error {
	errs := []error{s.Environment.Stop()}
	for _, folder := range s.durable {
		errs = append(errs, os.RemoveAll(folder))
	}
	return errors.Join(errs...)
}

func (o Options) environment() (*envtest.Environment, error) {
	environment := &envtest.Environment{ErrorIfCRDPathMissing: true, ControlPlaneStopTimeout: stopTimeout}
	for _, path := range o.CRDs {
		if !filepath.IsAbs(path) {
			root, err := Root()
			if err != nil {
				return nil, err
			}
			path = filepath.Join(root, path)
		}
		environment.CRDDirectoryPaths = append(environment.CRDDirectoryPaths, path)
	}
	endWatches(environment.ControlPlane.GetAPIServer())
	// Clients that ask each API server reach it at the address that it advertises, which is not loopback.
	arguments := environment.ControlPlane.GetAPIServer().Configure().Set("bind-address", "0.0.0.0")
	if o.NoWatchCache {
		arguments.Set("watch-cache", "false")
	}
	if o.StorageMigrations {
		served, err := migrationVersion()
		if err != nil {
			return nil, err
		}
		arguments.Append("feature-gates", "StorageVersionMigrator=true").Append("runtime-config", "storagemigration.k8s.io/"+served+"=true")
	}
	for name, value := range o.Arguments {
		arguments.Set(name, value)
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	if o.Durable {
		var errs [2]error
		environment.ControlPlane.Etcd.DataDir, errs[0] = os.MkdirTemp("", "etcd-")
		environment.ControlPlane.APIServer.CertDir, errs[1] = os.MkdirTemp("", "certificates-")
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
	}
	for name, value := range o.EtcdArguments {
		environment.ControlPlane.Etcd.Configure().Set(name, value)
	}
	return environment, nil
}

// endWatches makes an API server end watches when it stops. By default it waits a minute for them.
func endWatches(server *envtest.APIServer) {
	server.Configure().Set("shutdown-watch-termination-grace-period", "1s")
}

// migrationVersion returns the version of StorageVersionMigration that every release has which the
// tests run on: API servers reject flags for versions that they do not have.
func migrationVersion() (string, error) {
	output, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver"), "--version").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "", err
	}
	_, text, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	release, err := utilversion.ParseSemantic(text)
	if err != nil {
		return "", err
	}
	if release.LessThan(utilversion.MustParseSemantic("v1.35.0-alpha.0")) {
		return "v1alpha1", nil
	}
	return "v1beta1", nil
}

// OutsideAddress returns an address of this machine that the endpoints of a Service may have: an IPv4
// address that is not loopback.
func OutsideAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, address := range addresses {
		if found, ok := address.(*net.IPNet); ok && found.IP.To4() != nil && found.IP.IsGlobalUnicast() {
			return found.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback: endpoints of a Service may not be at that")
}

// ServiceCalls are arguments with which an API server calls the endpoints of Services directly, as
// nothing forwards the addresses of Services.
func ServiceCalls() map[string]string {
	return map[string]string{"enable-aggregator-routing": "true"}
}

// Root returns the root of the repository.
func Root() (string, error) {
	folder, err := os.Getwd()
	for ; err == nil; folder = filepath.Dir(folder) {
		if _, missing := os.Stat(filepath.Join(folder, OperatorCRDs)); missing == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("find the root of the repository: no folder above has " + OperatorCRDs)
		}
	}
	return "", err
}

// AtLeast reports whether an API server has this minor version of Kubernetes, such as v1.37, or a later
// one.
func AtLeast(tb testing.TB, config *rest.Config, minor string) bool {
	tb.Helper()
	return version(tb, config).AtLeast(utilversion.MustParseSemantic(minor + ".0-alpha.0"))
}

// NeedMutatingPolicies skips a test on a version of Kubernetes that does not serve
// MutatingAdmissionPolicies by default, and fails it if a later one does not.
func NeedMutatingPolicies(tb testing.TB, config *rest.Config) {
	tb.Helper()
	if !AtLeast(tb, config, "v1.36") {
		tb.Skip("Kubernetes before 1.36 does not serve MutatingAdmissionPolicies")
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(tb, err)
	served, err := disco.ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	expect.NoError(tb, err)
	if !slices.ContainsFunc(served.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == "MutatingAdmissionPolicy" }) {
		tb.Fatal("the API server does not serve MutatingAdmissionPolicies, and its version does")
	}
}

// Beside starts another API server on the etcd of its EtcdURL, which does not appear in the addresses
// of API servers, and stops it when the test ends. It returns the configuration of an administrator.
func Beside(tb testing.TB, server *envtest.APIServer) *rest.Config {
	tb.Helper()
	endWatches(server)
	server.Configure().Set("endpoint-reconciler-type", "none")
	server.StartTimeout, server.StopTimeout = startTimeout, stopTimeout
	var log bytes.Buffer
	server.Err = &log
	if err := server.Start(); err != nil {
		tb.Fatalf("%v: %s", err, log.Bytes()[max(0, log.Len()-5000):])
	}
	tb.Cleanup(func() {
		if err := server.Stop(); err != nil {
			tb.Error(err)
		}
	})
	config := &rest.Config{Host: server.SecureServing.URL("https", "/").String(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA}}
	user, err := server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, config)
	expect.NoError(tb, err)
	return user
}

// Minor returns the minor version of Kubernetes that an API server has, such as v1.37.
func Minor(tb testing.TB, config *rest.Config) string {
	tb.Helper()
	v := version(tb, config)
	return fmt.Sprintf("v%d.%d", v.Major(), v.Minor())
}

func version(tb testing.TB, config *rest.Config) *utilversion.Version {
	tb.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(tb, err)
	info, err := disco.ServerVersion()
	expect.NoError(tb, err)
	parsed, err := utilversion.ParseSemantic(info.GitVersion)
	expect.NoError(tb, err)
	return parsed
}

// For starts an API server for one test, and stops it when the test ends.
func For(tb testing.TB, options Options) *Server {
	tb.Helper()
	s, err := Start(options)
	expect.NoError(tb, err)
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Checkpoint copies the data of etcd, and returns a function that goes back to it, like a restore from a snapshot whose
// revision is not raised. API servers do not run meanwhile, as etcd's documentation demands.
func (s *Server) Checkpoint(tb testing.TB) (restore func()) {
	tb.Helper()
	saved := tb.TempDir()
	data := s.ControlPlane.Etcd.DataDir
	s.whileStopped(tb, func() error { return os.CopyFS(saved, os.DirFS(data)) })
	return func() {
		tb.Helper()
		s.whileStopped(tb, func() error { return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(saved))) })
	}
}

// RestartAPIServer stops the API server and starts it again, so that it reads its files. It must be Durable.
func (s *Server) RestartAPIServer(tb testing.TB) {
	tb.Helper()
	expect.NoError(tb, s.ControlPlane.APIServer.Stop())
	expect.NoError(tb, s.ControlPlane.APIServer.Start())
}

func (s *Server) whileStopped(tb testing.TB, do func() error) {
	tb.Helper()
	server, storage := s.ControlPlane.APIServer, s.ControlPlane.Etcd
	expect.NoError(tb, server.Stop())
	expect.NoError(tb, storage.Stop())
	expect.NoError(tb, do())
	expect.NoError(tb, storage.Start())
	expect.NoError(tb, server.Start())
}

// KubeconfigFile writes a kubeconfig file for the administrator, or for the given user.
func (s *Server) KubeconfigFile(tb testing.TB, user ...envtest.User) string {
	tb.Helper()
	text := s.KubeConfig
	for _, each := range user {
		added, err := s.AddUser(each, nil)
		expect.NoError(tb, err)
		text, err = added.KubeConfig()
		expect.NoError(tb, err)
	}
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	expect.NoError(tb, os.WriteFile(file, text, 0o600))
	return file
}

// Parallel sets how many tests of this package run in parallel: more than there are processors if they mostly
// wait. TestMain calls it.
func Parallel(atOnce int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err) // the testing package has that flag
	}
}
