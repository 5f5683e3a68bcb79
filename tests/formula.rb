# frozen_string_literal: true

# Does with the formula of make release what brew does with a formula, for tests/packages.sh: compares the checksum of the
# archive, unpacks it, installs, and runs the formula's own test.
#   ruby tests/formula.rb FORMULA deps             prints the formulas that it depends on
#   ruby tests/formula.rb FORMULA install PREFIX   FORMULA lies beside the archive

require "digest"
require "etc"
require "pathname"
require "tmpdir"

class Formula
  FIELDS = %i[desc homepage url sha256 license].freeze
  FIELDS.each do |field|
    define_singleton_method(field) { |value = nil| value ? fields[field] = value : fields.fetch(field) }
  end

  class << self
    attr_reader :trial

    def fields = @fields ||= {}
    def deps = @deps ||= []
    def depends_on(what) = deps << (what.is_a?(Hash) ? what.keys.first : what)
    def test(&block) = @trial = block
  end

  attr_reader :prefix, :testpath

  def initialize(prefix, testpath)
    @prefix = Pathname.new(prefix)
    @testpath = Pathname.new(testpath)
  end

  def bin = prefix + "bin"
  def version = self.class.url[/-([0-9.]+)\.tar\.gz$/, 1]

  def system(*words)
    Kernel.system(*words.map(&:to_s)) or raise "#{words.join(" ")}: #{$?}"
  end

  def shell_output(line, status = 0)
    output = `#{line}`
    $?.exitstatus == status or raise "#{line}: #{$?}, not #{status}: #{output}"
    output
  end

  def assert_equal(wanted, got)
    wanted == got or raise "'#{got}' is not '#{wanted}'"
  end

  def assert_match(pattern, text)
    text.match?(pattern) or raise "no '#{pattern}' in: #{text}"
  end
end

ENV["MAKEFLAGS"] = "-j#{Etc.nprocessors}"
file, verb, prefix = ARGV
load file
formula = ObjectSpace.each_object(Formula.singleton_class).find { |c| c != Formula }
Formula::FIELDS.each { |field| formula.public_send(field) }
if verb == "deps"
  puts formula.deps.grep(String)
else
  archive = File.join(File.dirname(File.expand_path(file)), File.basename(formula.url))
  sum = Digest::SHA256.file(archive).hexdigest
  sum == formula.sha256 or raise "#{archive} has the checksum #{sum}"
  Dir.mktmpdir do |dir|
    mine = formula.new(prefix, dir)
    mine.system("tar", "xf", archive, "-C", dir)
    Dir.chdir(Dir.glob("#{dir}/*/").fetch(0)) { mine.install }
    Dir.chdir(dir) { mine.instance_eval(&formula.trial) }
  end
end
